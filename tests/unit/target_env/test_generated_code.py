"""Generated code and the protobuf that runs it: the table of what was tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from faultlens.doctor.checks.packages.protobuf import Protobuf, satisfiable, unavailable
from faultlens.target_env.generated_code import Generated, Runtime, Style, generated, misfit
from made_environment import install, site_packages, target, tensorflow

# The first lines of such modules, in the four styles that protobuf has had.
DESCRIPTORS = """
from google.protobuf import descriptor as _descriptor
from google.protobuf import reflection as _reflection
from google.protobuf import symbol_database as _symbol_database
"""
POOL = DESCRIPTORS + "from google.protobuf import descriptor_pool as _descriptor_pool\n"
BUILDER = POOL + "from google.protobuf.internal import builder as _builder\n"
CHECKED = "# Protobuf Python Version: 6.31.1\n" + BUILDER + "_runtime_version.ValidateProtobufRuntimeVersion(\n"
VERSIONS = ("3.19.6", "3.20.3", "4.21.12", "5.26.1", "5.28.3", "6.30.2", "6.31.1", "7.34.0")


@pytest.mark.parametrize(
    ("head", "style"), [(DESCRIPTORS, "descriptors"), (POOL, "pool"), (BUILDER, "builder"), (CHECKED, "checked")]
)
def test_the_style_is_read(head: str, style: Style) -> None:
    code = generated(Path("types_pb2.py"), head)
    assert code is not None
    assert code.style == style


def test_other_modules_are_not_generated() -> None:
    assert generated(Path("types_pb2.py"), "import os\n") is None


@pytest.mark.parametrize(
    ("code", "works"),
    [
        (Generated(Path("tensorboard"), "descriptors"), VERSIONS[:2]),  # TensorBoard 2.8 to 2.11
        (Generated(Path("tensorboard"), "pool"), VERSIONS),  # TensorBoard 2.12
        (Generated(Path("tensorflow"), "builder"), VERSIONS[1:]),  # TensorFlow 2.12 to 2.19
        (Generated(Path("tensorflow"), "checked", "5.28.3"), VERSIONS[4:]),  # TensorFlow 2.20
        (Generated(Path("tensorflow"), "checked", "6.31.1"), VERSIONS[6:]),  # TensorFlow 2.21
    ],
)
def test_what_was_tried(code: Generated, works: tuple[str, ...]) -> None:
    runtimes = [Runtime(Path("google/protobuf"), version, not version.startswith("3.")) for version in VERSIONS]
    assert tuple(runtime.version for runtime in runtimes if misfit(code, runtime) is None) == works


def test_pure_python_still_makes_descriptors() -> None:
    runtime = Runtime(Path("google/protobuf"), "7.34.0", native=True)
    code = Generated(Path("tensorboard"), "descriptors")
    assert misfit(code, runtime, python_only=True) is None
    assert misfit(code, runtime._replace(native=False)) is None


def test_the_question_of_age_can_be_switched_off() -> None:
    code = Generated(Path("tensorflow"), "checked", "6.31.1")
    assert misfit(code, Runtime(Path(), "6.30.2", native=True), unchecked=True) is None


@pytest.mark.parametrize(
    ("value", "version", "fails"),
    [
        ("cpp", "3.20.3", True),
        ("cpp", "7.34.0", True),
        ("upb", "3.20.3", True),
        ("upb", "7.34.0", False),
        ("python", "3.20.3", False),
        ("fast", "5.28.3", True),
        (None, "5.28.3", False),
    ],
)
def test_the_variable(value: str | None, version: str, fails: bool) -> None:
    variables = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": value} if value else {}
    assert (unavailable(variables, Runtime(Path(), version, not version.startswith("3."))) is not None) is fails


def _protobuf(folder: Path, version: str, *, native: bool = False) -> None:
    files = {"google/protobuf/__init__.py": f"__version__ = '{version}'\n".encode()}
    install(folder, "protobuf", version, files=files | ({"google/_upb/_message.abi3.so": b""} if native else {}))


def test_the_runtime_in_front_counts(tmp_path: Path) -> None:
    """An old copy on PYTHONPATH hides the right one; the repair moves it aside, and nothing else of that folder."""
    own, overlay = site_packages(tmp_path), tmp_path / "overlay"
    tensorflow(own, requires=["protobuf<8.0.0,>=6.31.1"])
    (own / "tensorflow/core/framework").mkdir()
    (own / "tensorflow/core/framework/types_pb2.py").write_text(CHECKED)
    _protobuf(own, "7.36.2")
    assert Protobuf().examine(target(tmp_path)).mark == "ok"

    _protobuf(overlay, "5.29.5")
    found = Protobuf().examine(target(tmp_path, before=[overlay], variables={"PYTHONPATH": f"{overlay}:/other"}))
    assert found.mark == "error"
    (finding,) = found.findings
    assert "6.31.1" in finding.title and "5.29.5" in finding.title
    assert finding.fixes[0].command == "export PYTHONPATH=/other"
    assert finding.repair is not None
    moved = {command[3] for command in finding.repair.commands if command[0] == "mv"}
    assert moved == {str(overlay / "google/protobuf"), str(overlay / "protobuf-5.29.5.dist-info")}


def test_an_environment_on_pythonpath_is_not_touched(tmp_path: Path) -> None:
    own, other = site_packages(tmp_path), tmp_path / "other" / "site-packages"
    tensorflow(own, requires=["protobuf<8.0.0,>=6.31.1"])
    (own / "tensorflow/core/framework").mkdir()
    (own / "tensorflow/core/framework/types_pb2.py").write_text(CHECKED)
    _protobuf(other, "4.21.12")
    found = Protobuf().examine(target(tmp_path, before=[other], variables={"PYTHONPATH": str(other)}))
    (finding,) = found.findings
    assert finding.repair is None
    assert finding.fixes[0].command.startswith("unset PYTHONPATH && ")  # and a protobuf of its own is installed


def test_the_cure_is_not_what_is_installed(tmp_path: Path) -> None:
    """What the wheel asks for admits the release that fails: the generated code is stricter."""
    own = site_packages(tmp_path)
    tensorflow(own, requires=["protobuf>=6.31.0"])
    (own / "tensorflow/core/framework").mkdir()
    (own / "tensorflow/core/framework/types_pb2.py").write_text(CHECKED)
    _protobuf(own, "6.31.0")
    (finding,) = Protobuf().examine(target(tmp_path)).findings
    assert finding.repair is not None
    assert not Requirement(finding.repair.commands[0][-1]).specifier.contains("6.31.0")
    assert finding.repair.undo[0][-1] == "protobuf==6.31.0"


def test_a_package_that_tensorflow_does_not_need(tmp_path: Path) -> None:
    """It may bring several copies for several releases of protobuf and choose: a detail, no finding."""
    own = site_packages(tmp_path)
    install(own, "transformers", "5.22.2", files={"transformers/utils/model_pb2.py": DESCRIPTORS.encode()})
    _protobuf(own, "7.36.2", native=True)
    seen = Protobuf().examine(target(tmp_path))
    assert seen.mark == "ok"
    assert seen.details == ("transformers 5.22.2: generated code wants protobuf<4, where model_pb2.py is loaded",)


@pytest.mark.parametrize(
    ("asked", "installs"), [("protobuf<8.0.0,>=6.31.1", "tensorboard>2.10.0"), ("protobuf<5,>=3.20.3", "protobuf<4,")]
)
def test_the_cure_is_within_what_tensorflow_asks_for(tmp_path: Path, asked: str, installs: str) -> None:
    own = site_packages(tmp_path)
    tensorflow(own, requires=[asked])
    install(own, "tensorboard", "2.10.0", files={"tensorboard/event_pb2.py": DESCRIPTORS.encode()})
    _protobuf(own, "7.36.2", native=True)
    (finding,) = Protobuf().examine(target(tmp_path)).findings
    assert finding.severity == "warning"
    assert finding.repair is not None
    assert finding.repair.commands[0][-1].startswith(installs)


@pytest.mark.parametrize(
    ("bounds", "possible"),
    [
        ("", True),
        ("<4", True),
        (">=6.31.1", True),
        ("<4,<8.0.0,>=6.31.1", False),
        (">=3.20.3,!=3.20.3,<5", True),
        ("==5.*,>=5.28.3", True),
        ("==5.*,>=6.28.3", False),
        (">5.28,<6", True),
    ],
)
def test_bounds_that_contradict_each_other(bounds: str, possible: bool) -> None:
    assert satisfiable(SpecifierSet(bounds)) is possible
