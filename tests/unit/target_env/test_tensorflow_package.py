"""The TensorFlow an import would find, and what its import needs."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from faultlens.doctor.checks.packages.advisories import Advisories, split
from faultlens.doctor.checks.packages.tensorflow import TensorFlowPackage, keras_conflict, other_python
from faultlens.knowledge import Known, all_known_crashes
from faultlens.knowledge.crashes import ADVISORIES
from faultlens.records.finding import Examination
from faultlens.target_env.imports import would_import
from made_environment import install, site_packages, target, tensorflow


def _examine(tmp_path: Path, **given: object) -> Examination:
    return TensorFlowPackage().examine(target(tmp_path, **given))  # type: ignore[arg-type]


def test_nothing_installed(tmp_path: Path) -> None:
    assert _examine(tmp_path).mark == "skipped"
    assert Advisories().examine(target(tmp_path)).mark == "skipped"


def test_a_healthy_one(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path), tag="cp311-cp311-manylinux_2_27_x86_64")
    install(site_packages(tmp_path), "keras", "3.15.1")
    seen = _examine(tmp_path)
    assert (seen.mark, seen.findings) == ("ok", ())
    assert seen.summary == "tensorflow-cpu 2.21.0 for Python 3.11, with Keras 3.15.1"


def test_without_metadata_nothing_is_claimed(tmp_path: Path) -> None:
    folder = site_packages(tmp_path) / "tensorflow"
    folder.mkdir()
    (folder / "__init__.py").touch()
    assert _examine(tmp_path).mark == "ok"


@pytest.mark.parametrize(
    ("tags", "version", "said"),
    [
        (["cp311-cp311-manylinux_2_27_x86_64"], (3, 12, 1), "3.11"),
        (["cp311-cp311-manylinux_2_27_x86_64"], (3, 11, 9), None),
        (["cp310-cp310-linux_x86_64", "cp311-cp311-linux_x86_64"], (3, 12, 0), "3.10 or 3.11"),
        (["cp38-abi3-manylinux_2_17_x86_64"], (3, 12, 0), None),
        (["py3-none-any"], (3, 12, 0), None),
        ([], (3, 12, 0), None),
        (["cp311-cp311-linux_x86_64"], None, None),
    ],
)
def test_the_python_it_was_built_for(tags: list[str], version: tuple[int, ...] | None, said: str | None) -> None:
    assert other_python(tags, version) == said


@pytest.mark.parametrize(
    ("tensorflow", "keras", "works"),
    [  # as tried, by making and fitting a model
        ("2.12.0", "2.12.0", True),
        ("2.12.0", "2.13.1", False),
        ("2.12.0", "2.14.0", False),
        ("2.12.0", "2.15.0", False),
        ("2.12.0", "3.15.1", False),
        ("2.13.1", "2.12.0", True),
        ("2.13.1", "2.14.0", True),
        ("2.13.1", "2.15.0", False),
        ("2.14.1", "2.12.0", True),
        ("2.14.1", "2.15.0", True),
        ("2.14.1", "3.15.1", False),
        ("2.15.1", "2.12.0", True),
        ("2.15.1", "3.0.5", True),
        ("2.15.1", "3.15.1", True),
        ("2.16.2", "2.15.0", False),
        ("2.17.1", "2.15.0", False),
        ("2.21.0", "2.15.0", False),
        ("2.21.0", "3.0.5", True),
        ("2.21.0", None, True),  # the import works without it
        ("2.15.1", None, True),
        ("nightly", "3.0", True),
    ],
)
def test_keras(tensorflow: str, keras: str | None, works: bool) -> None:
    assert (keras_conflict(tensorflow, keras, legacy=False, tf_keras=False) is None) is works


def test_legacy_keras_needs_its_package() -> None:
    assert keras_conflict("2.21.0", "2.15.0", legacy=True, tf_keras=True) is None
    assert "tf-keras" in (keras_conflict("2.21.0", "3.15.1", legacy=True, tf_keras=False) or "")


def test_a_requirement_that_the_import_needs(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    tensorflow(own, requires=["wrapt>=1.11.0", "libclang>=13.0.0", "keras>=3.12.0", "gast<1; extra == 'x'"])
    install(own, "keras", "3.15.1")
    seen = _examine(tmp_path)
    assert [finding.title for finding in seen.findings] == ["wrapt is not installed, and `import tensorflow` needs it"]
    assert any("libclang" in line for line in seen.details)
    repair = seen.findings[0].repair
    assert repair is not None
    assert repair.commands[0][-1] == "wrapt>=1.11.0"
    assert repair.undo[0][-3:] == ("uninstall", "--yes", "wrapt")
    (own / "wrapt.py").touch()  # there, though not installed by pip
    assert _examine(tmp_path).mark == "ok"


def test_a_broken_range_alone_is_a_detail(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    tensorflow(own, "2.15.1", requires=["protobuf<5.0.0dev,>=3.20.3", "keras<2.16,>=2.15.0"])
    install(own, "protobuf", "6.33.0")
    install(own, "keras", "3.15.1")
    install(own, "tensorflow-text", "2.16.1", requires=["tensorflow<2.17,>=2.16.1"])
    seen = _examine(tmp_path)
    assert seen.mark == "ok"
    assert len([line for line in seen.details if "asks for" in line]) == 3


def test_another_tensorflow_in_front(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path))
    install(site_packages(tmp_path), "keras", "3.15.1")
    front = tmp_path / "front"
    front.mkdir()
    (front / "tensorflow").mkdir()  # a folder of data, no package: it hides nothing
    assert _examine(tmp_path, before=[front]).mark == "ok"
    (front / "tensorflow.py").touch()
    seen = _examine(tmp_path, before=[front])
    assert seen.mark == "error"
    assert str(front / "tensorflow.py") in seen.summary


def test_a_file_beside_the_program(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path))
    install(site_packages(tmp_path), "keras", "3.15.1")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "numpy.py").touch()
    seen = _examine(tmp_path)
    assert seen.mark == "warning"
    assert "numpy.py" in seen.summary


ML_DTYPES_02 = b"""
from ml_dtypes._custom_floats import bfloat16
from ml_dtypes._custom_floats import int4

def __getattr__(name):
    if name == 'float8_old':
        return bfloat16
    raise AttributeError(name)
"""
DTYPES = b"""
import ml_dtypes

def least(): return ml_dtypes.finfo(0).min
try:
    maybe = ml_dtypes.perhaps
except AttributeError:
    maybe = None
_np_bfloat16 = ml_dtypes.bfloat16
_np_float8_old = ml_dtypes.float8_old
_np_float4 = ml_dtypes.float4_e2m1fn
"""


def _with_ml_dtypes(tmp_path: Path, source: bytes, asked: str = "<1.0.0,>=0.5.1") -> Examination:
    own = site_packages(tmp_path)
    tensorflow(own, requires=[f"ml_dtypes{asked}"])
    (own / "tensorflow/python/framework").mkdir()
    (own / "tensorflow/python/framework/dtypes.py").write_bytes(DTYPES)
    install(own, "ml_dtypes", "0.2.0", files={"ml_dtypes/__init__.py": source})
    return _examine(tmp_path)


def test_a_name_that_tensorflow_takes_at_import_is_missing(tmp_path: Path) -> None:
    (finding,) = _with_ml_dtypes(tmp_path, ML_DTYPES_02).findings
    assert finding.severity == "error"
    assert finding.title == "ml-dtypes 0.2.0 has no float4_e2m1fn: `import tensorflow` fails"
    assert finding.repair is not None
    assert finding.repair.undo[0][-1] == "ml-dtypes==0.2.0"


@pytest.mark.parametrize(
    "source",
    [
        ML_DTYPES_02 + b"from ml_dtypes._ext import float4_e2m1fn",
        ML_DTYPES_02 + b"from ml_dtypes._ext import *",
        ML_DTYPES_02.replace(b"raise AttributeError(name)", b"return make(name)"),
        ML_DTYPES_02 + b"globals().update(names)",
        b"def def",
        b"",
        b"\xff\0",
    ],
)
def test_names_that_may_be_there(tmp_path: Path, source: bytes) -> None:
    assert _with_ml_dtypes(tmp_path, source).mark == "ok"


def test_a_release_that_tensorflow_asks_for_is_believed(tmp_path: Path) -> None:
    assert _with_ml_dtypes(tmp_path, ML_DTYPES_02, ">=0.2").mark == "ok"


def _with_keras(tmp_path: Path, folder: str = "keras/src/backend", **variables: str) -> Examination:
    own = site_packages(tmp_path)
    if not (own / "keras").exists():
        tensorflow(own)
        files = {"keras/__init__.py": b""} | {
            f"{folder}/{each}/__init__.py": b"" for each in ("tensorflow", "jax", "common")
        }
        install(own, "keras", "3.15.1", files=files)
    return _examine(tmp_path, variables={"HOME": str(tmp_path), **variables})


@pytest.mark.parametrize("value", ["jax", "theano", "TensorFlow", "common", "../backend/jax", "a\nb"])
def test_a_backend_that_keras_cannot_import(tmp_path: Path, value: str) -> None:
    (finding,) = _with_keras(tmp_path, KERAS_BACKEND=value).findings
    assert finding.severity == "error"
    assert finding.fixes[0].command == "unset KERAS_BACKEND"
    assert "\n" not in finding.title


def test_a_backend_that_is_there(tmp_path: Path) -> None:
    assert _with_keras(tmp_path).mark == "ok"
    assert _with_keras(tmp_path, KERAS_BACKEND="tensorflow").mark == "ok"
    assert _with_keras(tmp_path, KERAS_BACKEND="").mark == "ok"
    assert _with_keras(tmp_path, KERAS_BACKEND="theano", TF_USE_LEGACY_KERAS="1").summary.count("backend") == 0
    (site_packages(tmp_path) / "jax.py").touch()
    assert _with_keras(tmp_path, KERAS_BACKEND="jax").mark == "ok"


def test_keras_2_has_no_backends(tmp_path: Path) -> None:
    assert _with_keras(tmp_path, "keras/src/other", KERAS_BACKEND="theano").mark == "ok"


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        ('{"backend": "theano"}', "error"),
        ('{"backend": "tensorflow", "epsilon": 1e-7}', "ok"),
        ('{"floatx": "float32"}', "ok"),
        ('{"backend": 3}', "ok"),
        ("[]", "ok"),
        ("no JSON", "ok"),
        ("[" * 100_000, "ok"),
    ],
)
def test_the_file_of_keras(tmp_path: Path, content: str, mark: str) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text(content)
    assert _with_keras(tmp_path).mark == mark
    assert _with_keras(tmp_path, KERAS_HOME=str(tmp_path / ".keras")).mark == mark
    assert _with_keras(tmp_path, KERAS_BACKEND="tensorflow").mark == "ok"
    assert _with_keras(tmp_path, KERAS_HOME=str(tmp_path / "elsewhere")).mark == "ok"


def test_the_advice_mends_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".keras" / "keras.json"
    file.parent.mkdir()
    file.write_text('{"floatx": "float32", "backend": "theano"}')
    (finding,) = _with_keras(tmp_path).findings
    subprocess.run(shlex.split(finding.fixes[0].command), check=True)
    assert json.loads(file.read_text()) == {"floatx": "float32", "backend": "tensorflow"}
    assert _with_keras(tmp_path).mark == "ok"


def test_probability_wants_tf_keras(tmp_path: Path) -> None:
    own = site_packages(tmp_path)
    tensorflow(own)
    install(own, "keras", "3.15.1")
    requires = ['tensorflow>=2.16; extra == "tf"', 'tf-keras>=2.16; extra == "tf"', "absl-py"]
    install(own, "tensorflow-probability", "0.25.0", requires=requires)
    (finding,) = _examine(tmp_path).findings
    assert finding.severity == "warning"
    assert finding.repair is not None
    assert finding.repair.commands[0][-1] == "tf-keras==2.21.*"
    install(own, "tf-keras", "2.21.0")
    assert _examine(tmp_path).mark == "ok"


def test_what_an_import_finds(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first / "data", second / "data"):
        folder.mkdir(parents=True)
    (second / "data" / "__init__.py").touch()
    (first / "code.cpython-311-x86_64-linux-gnu.so").touch()
    found = would_import("data", [first, second])
    assert found is not None
    assert (found.place, found.kind) == (second / "data", "package")
    module = would_import("code", [tmp_path / "missing", first])
    assert module is not None
    assert module.kind == "module"
    assert would_import("nothing", [first, second]) is None


def test_known_crashes_are_told_and_are_no_finding(tmp_path: Path) -> None:
    tensorflow(site_packages(tmp_path), "2.4.1")
    seen = Advisories().examine(target(tmp_path))
    assert seen.mark == "ok"
    assert any("CVE-2021-29530" in line and "fixed in 2.4.2" in line for line in seen.details)


def test_an_advisory_counts_once() -> None:
    one = Known("CVE-1", ("A",), "", "2.5", f"{ADVISORIES}GHSA-1", "")
    tried = Known("issue 1", ("B",), "SIGABRT", None, "", "tried")
    assert split([one, one._replace(ops=("C",)), tried]) == ([one], [tried])
    assert all_known_crashes("2.21.0")
    assert all_known_crashes("no version") == ()
