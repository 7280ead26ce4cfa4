"""Which NumPy a module was built for, and which NumPy all of them accept."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

from faultlens.doctor.checks.packages.numpy_abi import Group, NumpyAbi, fitting_numpy, loadable
from faultlens.records.finding import Examination
from faultlens.system.binary import Binary
from faultlens.target_env.numpy_abi import NumpyUse, misfit, numpy_use
from made_environment import install, site_packages, target, tensorflow
from made_libraries import write_library

LIBRARY = Path(msgspec._core.__file__)

# As read from the wheels: TensorFlow 2.15.1 and what it was installed with, TensorFlow 2.21.0.
TENSORFLOW_215 = NumpyUse(Path("tensorflow/python/_pywrap_tensorflow_internal.so"), 1, None, old_pybind11=True)
ML_DTYPES_032 = NumpyUse(Path("ml_dtypes/_ml_dtypes_ext.so"), 1)
H5PY = NumpyUse(Path("h5py/_conv.so"), 2, "1.20")
H5PY_STRINGS = NumpyUse(Path("h5py/_npystrings.so"), 2, "2.0")
ML_DTYPES_060 = NumpyUse(Path("ml_dtypes/_ml_dtypes_ext.so"), 2, "1.23")


@pytest.mark.parametrize(
    ("use", "numpy", "said"),
    [
        (TENSORFLOW_215, "2.1.3", "was built for NumPy 1"),
        (TENSORFLOW_215, "1.26.4", None),
        (ML_DTYPES_032, "2.0.0rc1", "was built for NumPy 1"),
        (H5PY, "2.4.6", None),
        (H5PY, "1.23.5", None),
        (ML_DTYPES_060, "1.22.4", "needs NumPy 1.23 or newer"),
        (ML_DTYPES_060, "1.23.0", None),
        (NumpyUse(Path("x.so"), None, old_pybind11=True), "2.4.6", None),
        (TENSORFLOW_215, "unknown", None),
    ],
)
def test_a_module_and_a_numpy(use: NumpyUse, numpy: str, said: str | None) -> None:
    assert misfit(use, numpy) == said


def test_a_package_that_has_modules_for_both_is_usable() -> None:
    """h5py does without its module for the strings of NumPy 2."""
    assert Group("h5py 3.16.0", None, (H5PY, H5PY_STRINGS)).misfit("1.26.4") is None
    assert Group("h5py 3.16.0", None, (H5PY_STRINGS,)).misfit("1.26.4") is not None


@pytest.mark.parametrize(
    ("uses", "declared", "wanted"),
    [
        ([[TENSORFLOW_215], [ML_DTYPES_032], [H5PY, H5PY_STRINGS]], "<2.0.0,>=1.23.5", "<2.0.0,>=1.23.5"),
        ([[TENSORFLOW_215], [ML_DTYPES_060]], ">=1.22", "<2,>=1.23"),
        ([[ML_DTYPES_032], [H5PY_STRINGS]], "", None),  # one wants NumPy 1, the other NumPy 2
        ([[ML_DTYPES_032]], ">=2.1", None),
        ([[ML_DTYPES_060]], ">=1.26.0", ">=1.26.0"),
        ([[TENSORFLOW_215]], "==1.26.*,!=1.26.1", "<2,==1.26.*,!=1.26.1"),
    ],
)
def test_a_numpy_that_fits_all(uses: list[list[NumpyUse]], declared: str, wanted: str | None) -> None:
    groups = [Group(str(index), None, tuple(each)) for index, each in enumerate(uses)]
    found = fitting_numpy(groups, SpecifierSet(declared))
    assert (SpecifierSet(found) if found else None) == (SpecifierSet(wanted) if wanted else None)


TEXTS = (
    b"\0_ARRAY_API is NULL pointer\0numpy._core._multiarray_umath\0"
    b"module was compiled against NumPy C-API version 0x%x (NumPy 1.23) but\0"
)


def _module(path: Path, *texts: bytes) -> Path:
    return write_library(path, content=TEXTS + b"".join(text + b"\0" for text in texts))


def test_a_module_that_looks_up_numpy_exceptions(tmp_path: Path) -> None:
    """As ml_dtypes 0.6 does, whose headers say that NumPy 1.23 is enough."""
    plain = numpy_use(_module(tmp_path / "plain.so", b"exceptions"))
    asking = numpy_use(_module(tmp_path / "asking.so", b"exceptions", b"ComplexWarning"))
    assert plain is not None and asking is not None
    assert (plain.needs, asking.needs) == ("1.23", "1.25")


def _old_numpy(tmp_path: Path, numpy: str, ml_dtypes: str, asked: str) -> Examination:
    own = site_packages(tmp_path)
    requires = [f"ml_dtypes{asked}", "numpy>=1.26.0", "h5py>=3.11.0"]
    tensorflow(own, requires=requires)
    install(own, "numpy", numpy, files={"numpy/__init__.py": b""})
    for name, version in (("ml_dtypes", ml_dtypes), ("h5py", "3.14.0"), ("frames", "0.1")):
        content = _module(tmp_path / "made.so", b"exceptions", b"ComplexWarning").read_bytes()
        install(own, name, version, files={f"{name}/__init__.py": b"", f"{name}/_ext.so": content})
    return NumpyAbi().examine(target(tmp_path))


def test_packages_with_one_reason_and_one_cure_are_one_finding(tmp_path: Path) -> None:
    (finding,) = _old_numpy(tmp_path, "1.24.4", "0.6.0", ">=0.5.1").findings
    assert finding.severity == "error"
    assert finding.title.startswith(("h5py 3.14.0, ml-dtypes 0.6.0", "ml-dtypes 0.6.0, h5py 3.14.0"))
    assert finding.title.endswith("and frames 0.1 need NumPy 1.25 or newer; NumPy 1.24.4 is installed")
    assert finding.repair is not None
    assert finding.repair.commands[0][-1].startswith("numpy") and "1.26.0" in finding.repair.commands[0][-1]
    assert finding.repair.undo[0][-1] == "numpy==1.24.4"


def test_a_package_that_tensorflow_does_not_want_is_replaced_and_numpy_is_not(tmp_path: Path) -> None:
    found = _old_numpy(tmp_path, "1.24.4", "0.2.0", "<1.0.0,>=0.5.1").findings
    (own,) = (each for each in found if each.title.startswith("ml-dtypes"))
    assert own.repair is not None
    assert own.repair.commands[0][-1].startswith("ml-dtypes") and ">=0.5.1" in own.repair.commands[0][-1]
    assert own.repair.undo[0][-1] == "ml-dtypes==0.2.0"
    assert len(found) == 2


def test_a_new_enough_numpy(tmp_path: Path) -> None:
    assert _old_numpy(tmp_path, "1.26.4", "0.6.0", ">=0.5.1").mark == "ok"


def test_what_nothing_can_import_is_not_collected(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    used = (
        "numpy/a.so",
        "numpy.libs/libb.so.1",
        "tensorflow-plugins/libplug.so",
        "old-1.0-py3.11.egg/old/c.so",
        "d.so",
    )
    for file in (*used, "~umpy/a.so", "-umpy/a.so", "numpy.bak/a.so", "numpy/include/x.so", "__pycache__/y.so"):
        (own / file).parent.mkdir(parents=True, exist_ok=True)
        (own / file).touch()
    assert {str(path.relative_to(own)) for path in target(tmp_path).native_files} == set(used)


def test_files_that_are_no_libraries(tmp_path: Path) -> None:
    for name, content in {"empty.so": b"", "text.so": b"numpy._core", "short.so": b"\x7fELF\x02\x01"}.items():
        (tmp_path / name).write_bytes(content)
        assert numpy_use(tmp_path / name) is None
    assert numpy_use(tmp_path / "missing.so") is None


def test_texts_are_found_in_the_read_only_data(tmp_path: Path) -> None:
    with Binary(LIBRARY) as binary:
        assert binary.find_constant(b"msgspec.") >= 0
        assert binary.find(b"\x7fELF") == 0
        assert binary.find_constant(b"\x7fELF") == -1
    bare = bytearray(LIBRARY.read_bytes())
    bare[0x28:0x30] = bytes(8)  # e_shoff
    bare[0x3A:0x40] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx: a library can be loaded without sections
    (tmp_path / "bare.so").write_bytes(bare)
    with Binary(tmp_path / "bare.so") as binary:
        assert binary.find_constant(b"msgspec.") >= 0


def test_damaged_libraries(tmp_path: Path) -> None:
    """Whatever the headers say, reading them ends, and without an error."""
    whole = LIBRARY.read_bytes()
    chance = random.Random(5)
    headers = int.from_bytes(whole[0x28:0x30], "little")
    for _ in range(150):
        damaged = bytearray(whole[:200_000] + whole[headers:])
        damaged[0x28:0x30] = (200_000).to_bytes(8, "little")
        for _ in range(chance.randint(1, 40)):
            place = chance.choice((chance.randrange(64, 1000), chance.randrange(200_000, len(damaged))))
            damaged[place] = chance.randrange(256)
        (tmp_path / "damaged.so").write_bytes(damaged)
        assert numpy_use(tmp_path / "damaged.so") is None


def test_modules_of_another_python_are_not_loaded(tmp_path: Path) -> None:
    folder = site_packages(tmp_path)
    for tag in ("cpython-310-x86_64-linux-gnu", "cpython-311-x86_64-linux-gnu", "abi3"):
        (folder / f"frames.{tag}.so").write_bytes(b"")
    (folder / "frames.so").write_bytes(b"")
    overlay = tmp_path / "overlay"
    install(overlay, "far", "1.0", files={"far/deep/inside.so": b""})
    names = {path.name for path in loadable(target(tmp_path, before=[overlay]))}
    assert names == {"frames.cpython-311-x86_64-linux-gnu.so", "frames.abi3.so", "frames.so", "inside.so"}


def test_a_copy_that_is_hidden_is_not_loaded(tmp_path: Path) -> None:
    """Of a package, the copy that comes first counts; folders that packages share are not hidden."""
    own, front = site_packages(tmp_path), tmp_path / "front" / "site-packages"
    for folder in (own, front):
        install(folder, "frames", "1.0", files={"frames/__init__.py": b"", "frames/a.so": b"", "shared/b.so": b""})
    found = loadable(target(tmp_path, before=[front]))
    assert set(found) == {front / "frames/a.so", front / "shared/b.so", own / "shared/b.so"}


def test_without_numpy(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path))
    assert NumpyAbi().examine(target(tmp_path)).mark == "skipped"
