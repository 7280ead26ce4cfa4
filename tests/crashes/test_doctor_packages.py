"""Environments that are really broken: the doctor names it, its repair is carried out, and the import works."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(sysconfig.get_path("purelib"))
NUMPY_1 = "1.26.4"
with_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="needs NumPy")
with_tensorflow = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]
# `careful` hands the error on; `careless` goes on without NumPy's table of functions.
MODULE = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>
static PyObject *zeros(PyObject *self, PyObject *arguments) {
  npy_intp shape[1] = {3};
  return PyArray_SimpleNew(1, shape, NPY_DOUBLE);
}
static PyMethodDef methods[] = {{"zeros", zeros, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", "", -1, methods};
PyMODINIT_FUNC PyInit_NAME(void) {
  if (_import_array() < 0) { FAILED; }
  return PyModule_Create(&module);
}
"""
FAILED = {"careful": "return NULL", "careless": "PyErr_Clear()"}


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, errors="replace", timeout=170
    )


def doctor(python: Path | str, *words: str, **variables: str) -> dict[str, Any]:
    done = run(sys.executable, "-m", "faultlens", "doctor", "--python", python, "--json", "-", *words, **variables)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == any(each.get("findings") for each in found["examinations"]), done.stderr
    return found


def findings(checkup: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [finding for each in checkup["examinations"] for finding in each.get("findings", ())]


def repaired(python: Path | str, *checks: str, **variables: str) -> None:
    done = run(sys.executable, "-m", "faultlens", "doctor", "--python", python, "--fix", "--yes", *checks, **variables)
    assert "To take it back" in done.stderr, done.stdout + done.stderr


def undone(finding: Mapping[str, Any], **variables: str) -> None:
    for command in finding["repair"]["undo"]:
        done = run(*command, **variables)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment that sees the packages of this one behind its own."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("needs pip")
    folder = tmp_path / "env"
    done = run(sys.executable, "-m", "venv", "--without-pip", folder)
    assert done.returncode == 0, done.stderr
    (site_of(folder) / "behind.pth").write_text(f"{HERE}\n")
    return folder


def leave_out(environment: Path, package: str) -> None:
    """Not to be seen by the environment any more."""
    behind = environment / "behind"
    behind.mkdir()
    for entry in Path(HERE).iterdir():
        if not entry.name.startswith(package):
            (behind / entry.name).symlink_to(entry)
    (site_of(environment) / "behind.pth").write_text(f"{behind}\n")


def site_of(environment: Path) -> Path:
    return next(environment.glob("lib/python3.*/site-packages"))


def downloaded(requirement: str, folder: Path) -> Path:
    """The wheel. Skips where there is none to be had."""
    done = run(
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-d", folder, requirement
    )
    if done.returncode:
        pytest.skip(f"cannot download {requirement}: {done.stderr.strip()[-200:]}")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def numpy_1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last NumPy 1, as a wheel."""
    if sys.version_info >= (3, 13):
        pytest.skip("there is no NumPy 1 for this Python")
    return downloaded(f"numpy=={NUMPY_1}", tmp_path_factory.mktemp("numpy1"))


def build(name: str, folder: Path, headers: Path) -> Path:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("needs the headers of Python")
    source = folder / f"{name}.cc"
    source.write_text(MODULE.replace("NAME", name).replace("FAILED", FAILED[name]))
    library = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = [f"-I{path}" for path in (headers, sysconfig.get_path("include"))]
    done = run("g++", "-w", "-fpermissive", "-shared", "-fPIC", "-O1", *include, source, "-o", library)
    assert done.returncode == 0, done.stderr
    return library


@with_numpy
class TestNumpy:
    def test_modules_built_for_numpy_1(self, environment: Path, numpy_1: Path, tmp_path: Path) -> None:
        if importlib.metadata.version("numpy").startswith("1."):
            pytest.skip("needs NumPy 2")
        with zipfile.ZipFile(numpy_1) as wheel:
            wheel.extractall(tmp_path / "headers", [name for name in wheel.namelist() if "/include/" in name])
        python = environment / "bin" / "python"
        leave_out(environment, "pyarrow")  # which needs NumPy 2: there would be no NumPy for all
        for name in FAILED:
            build(name, site_of(environment), tmp_path / "headers/numpy/core/include")
        local = {"PIP_FIND_LINKS": str(numpy_1.parent)}

        careful = run(python, "-c", "import careful")
        careless = run(python, "-c", "import careless; careless.zeros()")
        assert careful.returncode == 1 and "ImportError" in careful.stderr
        assert careless.returncode == -signal.SIGSEGV

        found = findings(doctor(environment, "numpy-abi"))
        assert [each["severity"] for each in found] == ["error"]
        assert all(f"{name}." in found[0]["title"] for name in FAILED)
        assert " were built for NumPy 1; " in found[0]["title"]
        assert found[0]["causes"] == ["numpy-abi-mismatch"]

        repaired(environment, "numpy-abi", **local)
        assert run(python, "-c", "import careful, careless; print(careful.zeros() + careless.zeros())").returncode == 0
        assert findings(doctor(environment, "numpy-abi")) == []

        undone(found[0])
        assert run(python, "-c", "import careful").returncode == 1

    def test_modules_built_for_numpy_2_fit_both(self, environment: Path, numpy_1: Path) -> None:
        numpy = importlib.util.find_spec("numpy")
        assert numpy is not None and numpy.origin is not None
        headers = Path(numpy.origin).parent / "_core" / "include"
        if not headers.is_dir():
            pytest.skip("needs NumPy 2")
        python = environment / "bin" / "python"
        build("careful", site_of(environment), headers)
        assert run(python, "-c", "import careful; careful.zeros()").returncode == 0
        assert findings(doctor(environment, "numpy-abi")) == []

        done = run(python, "-m", "pip", "install", "--no-deps", "--no-index", numpy_1)
        assert done.returncode == 0, done.stderr
        assert run(python, "-c", "import careful; careful.zeros()").returncode == 0
        assert not [each for each in findings(doctor(environment, "numpy-abi")) if "careful" in each["title"]]

    def test_a_library_that_is_cut_off(self, environment: Path, tmp_path: Path) -> None:
        version = importlib.metadata.version("numpy")
        wheel = downloaded(f"numpy=={version}", tmp_path / "wheels")
        python = environment / "bin" / "python"
        assert (
            run(python, "-m", "pip", "install", "--no-deps", "--no-index", "--force-reinstall", wheel).returncode == 0
        )
        library = next(site_of(environment).glob("numpy/*core/_multiarray_umath*.so"))
        os.truncate(library, 100_000)
        assert run(python, "-c", "import numpy").returncode != 0

        (finding,) = findings(doctor(environment, "installation"))
        assert library.name in finding["title"] and "damaged" in finding["title"]

        repaired(environment, "installation", PIP_FIND_LINKS=str(wheel.parent))
        assert run(python, "-c", "import numpy; numpy.zeros(3)").returncode == 0
        assert findings(doctor(environment, "installation")) == []

        undone(finding)
        assert library.stat().st_size == 100_000


class TestTensorFlow:
    pytestmark = with_tensorflow

    def test_this_environment_is_healthy(self) -> None:
        checks = ("tensorflow", "requirements", "numpy-abi", "protobuf", "installation", "advisories")
        found = doctor(sys.executable, *checks)
        assert findings(found) == []
        assert {each["check"]: each["mark"] for each in found["examinations"]} == dict.fromkeys(checks, "ok")

    def test_a_package_lacks_what_it_needs(self, environment: Path) -> None:
        """The reason is two steps away from TensorFlow, and no native code is involved."""
        leave_out(environment, "urllib3")
        (finding,) = findings(doctor(environment, "tensorflow", "requirements", "--deep"))
        assert (finding["severity"], finding["title"]) == (
            "error",
            "urllib3 is not installed, and requests needs it: `import tensorflow` fails",
        )
        facts = {each["fact"] for each in finding["evidence"]}
        assert "ModuleNotFoundError: No module named 'urllib3'" in facts
        assert any(re.fullmatch(r"__init__.py imports it in line \d+", fact) for fact in facts)

    def test_an_import_that_fails_for_a_reason_nobody_foresaw(self, environment: Path) -> None:
        (site_of(environment) / "wrapt.py").write_text("raise RuntimeError('not today')\n")
        (finding,) = findings(doctor(environment, "requirements", "--deep"))
        assert finding["title"] == "`import tensorflow` fails: RuntimeError: not today"

    def test_an_old_protobuf_in_front(self, tmp_path: Path) -> None:
        overlay = tmp_path / "overlay"
        wheel = downloaded("protobuf==3.19.6", tmp_path / "wheels")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(overlay)
        path = {"PYTHONPATH": str(overlay)}
        died = run(sys.executable, "-c", "import tensorflow", **path)
        assert died.returncode == 1 and "ImportError" in died.stderr

        (finding,) = findings(doctor(sys.executable, "protobuf", **path))
        assert finding["severity"] == "error" and "3.19.6" in finding["title"]
        assert finding["fixes"][0]["command"] == "unset PYTHONPATH"
        said = next(each["fact"] for each in finding["evidence"] if "will say" in each["fact"])
        assert said.partition(": ")[2] in died.stderr

        repaired(sys.executable, "protobuf", **path)
        assert findings(doctor(sys.executable, "protobuf", **path)) == []
        works = run(sys.executable, "-c", "import tensorflow as tf; tf.train.Example().SerializeToString()", **path)
        assert works.returncode == 0, works.stderr

        undone(finding)
        assert (overlay / "google/protobuf/__init__.py").exists()

    def test_a_protobuf_implementation_that_is_not_there(self) -> None:
        variables = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "cpp"}
        assert run(sys.executable, "-c", "import google.protobuf.descriptor_pb2", **variables).returncode == 1
        (finding,) = findings(doctor(sys.executable, "protobuf", **variables))
        assert finding["fixes"][0]["command"] == "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"

    def test_a_file_that_hides_tensorflow(self, tmp_path: Path) -> None:
        (tmp_path / "tensorflow.py").write_text("VERSION = 1\n")
        path = {"PYTHONPATH": str(tmp_path)}
        question = "import importlib.util; print(importlib.util.find_spec('tensorflow').origin)"
        assert str(tmp_path) in run(sys.executable, "-c", question, **path).stdout
        (finding,) = findings(doctor(sys.executable, "tensorflow", **path))
        assert str(tmp_path / "tensorflow.py") in finding["title"]
        repaired(sys.executable, "tensorflow", **path)
        assert str(tmp_path) not in run(sys.executable, "-c", question, **path).stdout

    def test_keras_2_in_front(self, tmp_path: Path) -> None:
        wheel = downloaded("keras==2.15.0", tmp_path / "wheels")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "overlay")
        path = {"PYTHONPATH": str(tmp_path / "overlay")}
        program = "import tensorflow as tf; tf.keras.layers.Dense(1)"
        assert run(sys.executable, "-c", program, **path).returncode == 1
        (finding,) = findings(doctor(sys.executable, "tensorflow", **path))
        assert "Keras 2.15.0" in finding["title"]
        repaired(sys.executable, "tensorflow", **path)
        assert run(sys.executable, "-c", program, **path).returncode == 0
