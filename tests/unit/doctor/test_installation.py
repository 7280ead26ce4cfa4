"""What the metadata say against what lies in the folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from faultlens.doctor.checks.packages.installation import Installation
from faultlens.doctor.checks.packages.tensorflow import TensorFlowPackage
from faultlens.records.finding import Examination
from faultlens.target_env.installed_files import State, inspect, native_files
from made_environment import install, site_packages, target, tensorflow

LIBRARY = Path(msgspec._core.__file__).read_bytes()
NAME = "tensorflow/python/_pywrap_tensorflow_internal.so"


def _examine(tmp_path: Path, *, deep: bool = False) -> Examination:
    return Installation().examine(target(tmp_path, deep=deep))


def _tensorflow(folder: Path, name: str = "tensorflow-cpu", version: str = "2.21.0", more: bytes = b"") -> Path:
    files = {"tensorflow/__init__.py": b"", NAME: LIBRARY + more, "tensorflow/lite/small.so": LIBRARY + more}
    return install(folder, name, version, files=files)


def test_whole(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    seen = _examine(tmp_path)
    assert (seen.mark, seen.summary) == ("ok", "2 native files of 1 packages are there and whole")


def test_nothing_installed(tmp_path: Path) -> None:
    assert _examine(tmp_path).mark == "skipped"


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (LIBRARY, "whole"),
        (LIBRARY[: len(LIBRARY) // 2], "damaged"),
        (LIBRARY[:10], "damaged"),
        (b"", "damaged"),
        (b"\0" * 4096, "damaged"),
        (LIBRARY + b"patched", "other"),
        (None, "missing"),
    ],
)
def test_a_native_file(tmp_path: Path, content: bytes | None, state: State) -> None:
    _tensorflow(site_packages(tmp_path))
    place = site_packages(tmp_path) / NAME
    if content is None:
        place.unlink()
    else:
        place.write_bytes(content)
    environment = target(tmp_path)
    found = {file.listed.path: file.state for file in map(inspect, native_files(environment.distributions[0]))}
    assert found[place] == state
    assert Installation().examine(environment).mark == ("error" if state in ("damaged", "missing") else "ok")


def test_a_changed_file_is_found_by_its_sum(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    assert _examine(tmp_path, deep=True).mark == "ok"
    (site_packages(tmp_path) / NAME).write_bytes(LIBRARY[:-1] + b"?")
    assert _examine(tmp_path).mark == "ok"
    assert _examine(tmp_path, deep=True).mark == "error"


def test_what_is_not_loaded_by_every_import_is_a_warning(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    (site_packages(tmp_path) / "tensorflow/lite/small.so").unlink()
    assert _examine(tmp_path).mark == "warning"


def test_a_package_that_was_slimmed_on_purpose(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    install(own, "frames", "1.0", files={"frames/a.so": LIBRARY, "frames/tests/b.so": LIBRARY})
    (own / "frames/tests/b.so").unlink()
    assert _examine(tmp_path).mark == "ok"


def test_without_a_record_nothing_is_claimed(tmp_path: Path) -> None:
    metadata = _tensorflow(site_packages(tmp_path))
    (metadata / "RECORD").unlink()
    (site_packages(tmp_path) / NAME).unlink()
    assert _examine(tmp_path).mark == "ok"


def test_the_damaged_file_is_kept_aside(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    place = site_packages(tmp_path) / NAME
    place.write_bytes(LIBRARY[:5000])
    (finding,) = _examine(tmp_path).findings
    assert finding.repair is not None
    assert finding.repair.commands[-1][-1] == "tensorflow-cpu==2.21.0"
    assert finding.repair.undo == (("mv", "-T", str(place.parent / ".faultlens-aside" / place.name), str(place)),)


def test_two_flavours_of_one_release_are_no_finding(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    _tensorflow(own, "tensorflow")
    _tensorflow(own, "tensorflow-cpu")
    assert _examine(tmp_path).mark == "ok"


def test_two_releases_in_one_folder(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    _tensorflow(own, "tensorflow", "2.15.1", more=b"another size")
    _tensorflow(own, "tensorflow-cpu", "2.21.0")
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "warning"
    assert "tensorflow 2.15.1 and tensorflow-cpu 2.21.0" in finding.title
    assert "those of 2.21.0" in finding.title
    assert finding.repair is not None
    assert finding.repair.commands[0][-1] == "tensorflow"
    assert finding.repair.commands[1][-1] == "tensorflow-cpu==2.21.0"


def test_files_of_two_releases_are_mixed(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    _tensorflow(own, "tensorflow", "2.15.1", more=b"another size")
    _tensorflow(own, "tensorflow-cpu", "2.21.0")
    (own / NAME).write_bytes(LIBRARY + b"another size")
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "error"
    assert "overwrote each other" in finding.title


@pytest.mark.parametrize(
    ("left", "brought", "mark"),
    [
        ("tensorflow/lite/wrapper.so", "tensorflow/lite/wrapper.py", "error"),
        ("tensorflow/lite/wrapper/__init__.py", "tensorflow/lite/wrapper.py", "error"),
        ("tensorflow/lite/wrapper.py", "tensorflow/lite/wrapper.so", "warning"),  # a compiled module comes first
        ("tensorflow/lite/old.so", "tensorflow/lite/wrapper.py", "warning"),  # nobody imports it
    ],
)
def test_a_module_of_the_other_release_comes_first(tmp_path: Path, left: str, brought: str, mark: str) -> None:
    own = site_packages(tmp_path)
    files = {"tensorflow/__init__.py": b"", NAME: LIBRARY}
    older, newer = (LIBRARY if name.endswith(".so") else b"x = 1\n" for name in (left, brought))
    install(own, "tensorflow-cpu", "2.20.0", files={**files, NAME: LIBRARY + b"older", left: older})
    install(own, "tensorflow", "2.21.0", files={**files, brought: newer})
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == mark
    if mark == "error":
        assert finding.title.startswith("tensorflow 2.21.0 and tensorflow-cpu 2.20.0: files of both are mixed")
        assert any(fact.source == str(own / left) for fact in finding.evidence)


def test_a_wheel_that_only_asks_for_another_shares_nothing(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    install(own, "tensorflow", "2.15.1", requires=["tensorflow-intel==2.15.1"])
    _tensorflow(own, "tensorflow-intel", "2.15.1")
    assert _examine(tmp_path).mark == "ok"


def test_metadata_of_two_releases(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    stale = install(own, "numpy", "1.26.4", files={"numpy/__init__.py": b"", "numpy/_core.so": LIBRARY + b"older"})
    install(own, "numpy", "2.4.6", files={"numpy/_core.so": LIBRARY})
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "warning"
    assert finding.title.endswith("the files are those of 2.4.6")
    assert finding.repair is not None
    assert str(stale) in finding.repair.commands[1]


def test_a_folder_without_init(tmp_path: Path) -> None:
    metadata = tensorflow(site_packages(tmp_path))
    (site_packages(tmp_path) / "tensorflow/__init__.py").unlink()
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "error"
    assert "no __init__.py" in finding.title
    assert "--force-reinstall" in finding.fixes[0].command
    assert metadata.exists()
    assert TensorFlowPackage().examine(target(tmp_path)).mark == "skipped"


def _tagged(*tags: str) -> dict[str, bytes]:
    return {"h5py/__init__.py": b""} | {f"h5py/_{name}{tag}.so": LIBRARY for name in "ab" for tag in tags}


OTHER, OURS = ".cpython-312-x86_64-linux-gnu", ".cpython-311-x86_64-linux-gnu"


@pytest.mark.parametrize(
    ("tags", "mark"),
    [
        ([OTHER], "warning"),
        ([OTHER, OURS], "ok"),
        ([OTHER, ".abi3"], "ok"),
        ([OTHER, ""], "ok"),
        ([OURS], "ok"),
        ([".cpython-311d-x86_64-linux-gnu"], "ok"),  # for a Python with other settings, maybe this one
        ([""], "ok"),
    ],
)
def test_modules_for_another_python(tmp_path: Path, tags: list[str], mark: str) -> None:
    _tensorflow(site_packages(tmp_path))
    install(site_packages(tmp_path), "h5py", "3.14.0", files=_tagged(*tags))
    seen = _examine(tmp_path)
    assert seen.mark == mark
    if seen.findings:
        assert seen.summary == "h5py was built for Python 3.12, this is 3.11: `import h5py` fails"
        repair = seen.findings[0].repair
        assert repair is not None
        assert repair.commands[-1][-1] == "h5py==3.14.0"
        assert len(repair.undo) == 2


def test_a_folder_of_another_python_is_one_finding(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    front = tmp_path / "front" / "site-packages"
    install(front, "h5py", "3.14.0", files=_tagged(OTHER))
    install(front, "numpy", "2.4.6", files={"numpy/__init__.py": b"", f"numpy/_core/_multi{OTHER}.so": LIBRARY})
    seen = Installation().examine(target(tmp_path, before=[front], variables={"PYTHONPATH": str(front)}))
    (finding,) = seen.findings
    assert finding.severity == "error"
    assert finding.title == "numpy, h5py were built for Python 3.12, this is 3.11: `import tensorflow` fails"
    assert finding.fixes[0].command == "unset PYTHONPATH"
    assert finding.repair is None


def _sources(folder: Path, changed: int, *, size: bool = True) -> None:
    files = {f"tensorflow/python/file{number}.py": b"x = 1\n" for number in range(40)}
    install(folder, "tensorflow-cpu", "2.21.0", files={"tensorflow/__init__.py": b"", **files})
    for name in list(files)[:changed]:
        (folder / name).write_bytes(b"x = 1234\n" if size else b"x = 2\n")


@pytest.mark.parametrize(("changed", "mark"), [(0, "ok"), (3, "ok"), (9, "warning"), (40, "ok")])
def test_python_files_of_another_release(tmp_path: Path, changed: int, mark: str) -> None:
    """A few may be edited by hand, all may be rewritten by a tool."""
    _sources(site_packages(tmp_path), changed)
    seen = _examine(tmp_path)
    assert seen.mark == mark
    if seen.findings:
        assert seen.summary.startswith("9 of 41 Python files of tensorflow-cpu 2.21.0 were changed")


def test_python_files_of_the_same_size_are_seen_by_their_sums(tmp_path: Path) -> None:
    _sources(site_packages(tmp_path), 9, size=False)
    assert _examine(tmp_path).mark == "ok"
    assert _examine(tmp_path, deep=True).mark == "warning"


def test_python_files_without_a_size_in_record(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    _sources(own, 0)
    record = next(own.glob("*.dist-info")) / "RECORD"
    record.write_text("".join(f"{line.split(',')[0]},,\n" for line in record.read_text().splitlines()))
    for number in range(9, 20):
        (own / f"tensorflow/python/file{number}.py").write_bytes(b"another size")
    assert _examine(tmp_path).mark == "ok"


def test_python_files_that_are_missing(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    _sources(own, 0)
    for number in range(3):
        (own / f"tensorflow/python/file{number}.py").unlink()
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "error"
    assert finding.title == "tensorflow-cpu 2.21.0: tensorflow/python/file0.py is missing and 2 more Python files"
    assert finding.repair is not None
    assert finding.repair.commands[-1][-1] == "tensorflow-cpu==2.21.0"
    for number in range(3):  # compiled ones beside stand for them
        (own / f"tensorflow/python/file{number}.pyc").write_bytes(b"")
    assert _examine(tmp_path).mark == "ok"


CLASS = b"class Layer:\n    def call(self, inputs):\n        return (inputs,\n                0)\n"
KERAS = {"keras/__init__.py": b"", "keras/layer.py": CLASS, "keras/layer_test.py": b"", "keras/tests/a.py": b""}


def _keras(tmp_path: Path) -> Path:
    own = site_packages(tmp_path)
    tensorflow(own, requires=["keras>=3.12.0", "opt-einsum"])
    install(own, "keras", "3.15.1", files={**KERAS, "../../../bin/keras.py": b""})
    install(own, "opt-einsum", "3.4.0", files={"opt_einsum/__init__.py": b""})
    install(own, "pandas", "3.1.1", files={"pandas/__init__.py": b"", "pandas/frame.py": CLASS})
    return own


def test_a_package_without_its_files(tmp_path: Path) -> None:
    own = _keras(tmp_path)
    assert _examine(tmp_path).mark == "ok"
    shutil.rmtree(own / "opt_einsum")
    seen = _examine(tmp_path)
    assert (seen.mark, seen.summary) == ("error", "opt-einsum 3.4.0: opt_einsum/__init__.py is missing")
    front = tmp_path / "front"
    (front / "opt_einsum").mkdir(parents=True)
    (front / "opt_einsum/__init__.py").touch()
    assert Installation().examine(target(tmp_path, before=[front])).mark == "ok"  # found elsewhere


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("keras/layer.py", "error"),
        ("keras/layer_test.py", "ok"),
        ("keras/tests/a.py", "ok"),
        ("../../../bin/keras.py", "ok"),
        ("pandas/frame.py", "ok"),  # TensorFlow does not import it
    ],
)
def test_files_that_are_left_out(tmp_path: Path, name: str, mark: str) -> None:
    (_keras(tmp_path) / name).unlink()
    assert _examine(tmp_path).mark == mark


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (CLASS[:-8], "error"),
        (CLASS[:20], "error"),
        (b"", "error"),
        (b"\0" * 40, "error"),
        (b"import os  # in the mid", "error"),
        (b"class Layer: pass\n", "ok"),  # the user's own
        (CLASS.replace(b"inputs", b"input")[:-1], "ok"),
        (CLASS + b"print(", "ok"),  # longer: an edit, not a cut
    ],
)
def test_a_python_file_that_is_cut_off(tmp_path: Path, content: bytes, mark: str) -> None:
    place = _keras(tmp_path) / "keras/layer.py"
    place.write_bytes(content)
    seen = _examine(tmp_path)
    assert seen.mark == mark
    if seen.findings:
        assert seen.summary == "keras 3.15.1: keras/layer.py is cut off"
        repair = seen.findings[0].repair
        assert repair is not None
        assert repair.undo == (("mv", "-T", str(place.parent / ".faultlens-aside" / place.name), str(place)),)
    else:
        assert any("layer.py" in line for line in seen.details)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter everything")
def test_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    folder = site_packages(tmp_path) / "tensorflow/lite"
    folder.chmod(0)
    seen = _examine(tmp_path)
    folder.chmod(0o755)
    assert seen.mark == "warning"
    assert seen.summary.endswith("1 native files are in folders that this user may not enter")


def test_a_compiled_module_that_has_a_replacement_in_python(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    tensorflow(own, requires=["wrapt", "ml-dtypes"])
    for name in ("wrapt", "ml_dtypes"):
        install(own, name, "2.5.2", files={f"{name}/__init__.py": b"", f"{name}/_native.so": LIBRARY})
    (own / "wrapt/_native.so").write_bytes(b"")
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "warning"
    assert finding.title == "wrapt 2.5.2: _native.so is damaged, it goes on in Python"
    (own / "ml_dtypes/_native.so").write_bytes(b"")
    assert _examine(tmp_path).mark == "error"


def test_what_pip_left_behind_is_a_detail(tmp_path: Path) -> None:
    _tensorflow(site_packages(tmp_path))
    (site_packages(tmp_path) / "~ensorflow").mkdir()
    seen = _examine(tmp_path)
    assert seen.mark == "ok"
    assert any("~ensorflow" in line for line in seen.details)


def test_a_damaged_record(tmp_path: Path) -> None:
    metadata = _tensorflow(site_packages(tmp_path))
    (metadata / "RECORD").write_bytes(
        b'\xff\xfe,,,\n"a,b.so",x,-1\n.so,,99999999999999999999\n,,\n/etc/x.so,sha256=,\n'
    )
    assert _examine(tmp_path, deep=True).mark in ("ok", "warning", "error")
