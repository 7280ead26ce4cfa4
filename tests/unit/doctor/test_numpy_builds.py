"""Which NumPy a module was built for, and which NumPy all of them accept."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from made_environment import install, patient, site_packages, tensorflow
from packaging.specifiers import SpecifierSet

from faultlens.doctor.checks.packages.numpy_abi import Group, NumpyAbi, fitting_numpy, loadable
from faultlens.doctor.numpy_abi import NumpyUse, misfit, numpy_use
from faultlens.environment.binary import Binary

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
        (ML_DTYPES_060, "1.22.4", "was built for NumPy 1.23 or newer"),
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
    names = {path.name for path in loadable(patient(tmp_path, before=[overlay]))}
    assert names == {"frames.cpython-311-x86_64-linux-gnu.so", "frames.abi3.so", "frames.so", "inside.so"}


def test_a_copy_that_is_hidden_is_not_loaded(tmp_path: Path) -> None:
    """Of a package, the copy that comes first counts; folders that packages share are not hidden."""
    own, front = site_packages(tmp_path), tmp_path / "front" / "site-packages"
    for folder in (own, front):
        install(folder, "frames", "1.0", files={"frames/__init__.py": b"", "frames/a.so": b"", "shared/b.so": b""})
    found = loadable(patient(tmp_path, before=[front]))
    assert set(found) == {front / "frames/a.so", front / "shared/b.so", own / "shared/b.so"}


def test_without_numpy(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path))
    assert NumpyAbi().examine(patient(tmp_path)).mark == "skipped"
