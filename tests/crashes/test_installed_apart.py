"""faultlens in an environment of its own (pipx, uv tool), the program in another: its Python is told, not ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import faultlens
from faultlens.records import report_file
from faultlens.records.crash import Crash, PythonInfo

CRASH = "import ctypes\nctypes.string_at(0)\n"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

Start = Callable[..., Crash]


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with faultlens in its site-packages, as an installation puts it there."""
    root = tmp_path_factory.mktemp("tool") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True, timeout=60)
    site = root / "lib" / f"python{VERSION}" / "site-packages"
    shutil.copytree(Path(faultlens.__file__).parent, site / "faultlens", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "tool_only-1.0.dist-info").mkdir()
    # What faultlens needs itself: too much to copy.
    (site / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return root


@pytest.fixture
def start(apart: Path, tmp_path: Path) -> Start:
    """start(program, …) → the crash, seen by the faultlens that is installed apart."""

    def run(*command: str | Path, **variables: str) -> Crash:
        report = tmp_path / "report.json"
        done = subprocess.run(
            [apart / "bin" / "python", "-m", "faultlens", "run", "--json", report, "--", *command],
            env={**_plain(), "FAULTLENS_HOME": str(tmp_path / "home"), **variables},
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
        )
        assert report.exists(), done.stderr
        return report_file.read(report).crash

    return run


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}


def installed(python: str | Path) -> dict[str, str]:
    """What that Python says itself."""
    question = (
        "import importlib.metadata as m\n"
        "for d in m.distributions(): print((d.metadata['Name'] or '').replace('-', '_').lower(), d.version)"
    )
    said = subprocess.run([python, "-I", "-c", question], capture_output=True, text=True, check=True, env=_plain())
    found: dict[str, str] = {}
    for line in said.stdout.splitlines():
        name, _, version = line.partition(" ")
        found.setdefault(name, version)
    return found


def named(python: PythonInfo) -> dict[str, str]:
    return {package.name.replace("-", "_").replace(".", "_").lower(): package.version for package in python.packages}


def python_of(crash: Crash) -> PythonInfo:
    assert crash.program.python is not None
    return crash.program.python


def pythons() -> list[str]:
    """A system's, and one built from source (pyenv, conda): neither is a virtual environment."""
    found = [path for path in ("/usr/bin/python3", f"{sys.base_prefix}/bin/python3") if Path(path).exists()]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("python", pythons())
def test_packages_are_those_of_the_program(start: Start, tmp_path: Path, python: str) -> None:
    (tmp_path / "crash.py").write_text(CRASH)
    found = python_of(start(python, "crash.py"))
    assert found.prefix is None
    assert "tool_only" not in named(found)
    assert named(found) == {name.replace(".", "_"): version for name, version in installed(python).items()}


def test_an_environment_found_by_its_path(start: Start, tmp_path: Path) -> None:
    """`python crash.py` with nothing of it loaded that would tell where it is."""
    (tmp_path / "crash.py").write_text(CRASH)
    root = tmp_path / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True, timeout=60)
    (root / "lib" / f"python{VERSION}" / "site-packages" / "theirs-2.0.dist-info").mkdir()
    found = python_of(start("python", "crash.py", PATH=f"{root}/bin:{os.environ['PATH']}"))
    assert found.prefix == str(root)
    assert named(found) == {"theirs": "2.0"}


SAYS_AND_DIES = """
import ctypes, importlib.metadata, json, os, sys
sys.path.insert(0, "beside")
os.chdir("elsewhere")
said = {}
for each in importlib.metadata.distributions():
    if each.metadata["Name"]:
        said.setdefault(each.metadata["Name"], each.version)
json.dump([said, sys.path], open("../said.json", "w"))
ctypes.string_at(0)
"""


def describe(folder: Path, name: str, version: str) -> None:
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize("kind", ["alone", "system", "none"])
def test_every_version_is_the_one_that_the_program_sees(start: Start, tmp_path: Path, kind: str) -> None:
    """A virtual environment that is named from the current folder, which the program leaves; packages in all places
    from which Python takes them, most of them twice."""
    base = pythons()[-1] if kind != "none" else pythons()[0]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "dies.py").write_text(SAYS_AND_DIES)
    version = subprocess.run([base, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True)
    library = f"lib/python{version.stdout.decode().strip()}/site-packages"
    describe(tmp_path / "elsewhere" / "beside", "pip", "1000.1")
    describe(tmp_path / "variable", "numpy", "1000.2")
    describe(tmp_path / "home" / library, "setuptools", "1000.3")
    describe(tmp_path / "linked", "wheel", "1000.4")
    python = base
    if kind != "none":
        options = ["--system-site-packages"] if kind == "system" else []
        subprocess.run([base, "-m", "venv", "--without-pip", *options, tmp_path / "theirs"], check=True, timeout=60)
        describe(tmp_path / "theirs" / library, "protobuf", "1000.5")
        (tmp_path / "theirs" / library / "link.pth").write_text(f"{tmp_path}/linked\n")
        python = "theirs/bin/python"
    variables = {"PYTHONPATH": str(tmp_path / "variable"), "PYTHONUSERBASE": str(tmp_path / "home")}
    found = python_of(start(python, "dies.py", **variables))
    said, path = json.loads((tmp_path / "said.json").read_text())
    assert {package.name: package.version for package in found.packages} == said
    assert found.path == tuple(str(tmp_path / "elsewhere" / entry) for entry in path)
    assert found.prefix == (str(tmp_path / "theirs") if kind != "none" else None)


def test_a_program_without_python_has_none(start: Start, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "crash.c").write_text("int main(void) { return *(volatile int *)0; }\n")
    subprocess.run(["gcc", "-w", "-o", "crash", "crash.c"], cwd=tmp_path, check=True, timeout=60)
    assert start("./crash").program.python is None


@pytest.mark.parametrize("python", pythons()[:1])
def test_it_is_reproduced_with_the_python_of_the_program(
    start: Start, apart: Path, tmp_path: Path, python: str
) -> None:
    (tmp_path / "crash.py").write_text(
        f"import ctypes, sys\nif sys.prefix != {str(apart)!r}:\n    ctypes.string_at(0)\n"
    )
    start(python, "crash.py")
    done = subprocess.run(
        [apart / "bin" / "python", "-m", "faultlens", "repro", "--seconds", "0", "--out", "out"],
        env={**_plain(), "FAULTLENS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
