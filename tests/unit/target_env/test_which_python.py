"""Which Python a verb takes, asked of a faultlens that lives in a virtual environment; and what `run` starts."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import faultlens
from faultlens.cli.run import with_default
from faultlens.errors import FaultlensError
from faultlens.target_env.command import resolve_command

SOURCES = Path(faultlens.__file__).parent.parent
QUESTION = """
import os, sys
from faultlens.target_env.which_python import which_python
print(tuple(which_python(sys.argv[1] or None, os.environ)))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("own") / "venv")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("other") / "venv")


def environment(root: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True, timeout=60)
    return root


def ask(root: Path, wanted: str = "", /, **variables: str) -> tuple[str, str]:
    done = subprocess.run(
        [root / "bin" / "python", "-c", QUESTION, wanted],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SOURCES), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    executable, why = ast.literal_eval(done.stdout)
    return executable, why


def test_the_one_that_was_named(own: Path, other: Path) -> None:
    python = str(other / "bin" / "python")
    assert ask(own, str(other), VIRTUAL_ENV=str(own)) == (python, "--python")
    assert ask(own, python, VIRTUAL_ENV=str(own)) == (python, "--python")


def test_the_active_environment(own: Path, other: Path) -> None:
    python = str(other / "bin" / "python")
    assert ask(own, VIRTUAL_ENV=str(other), CONDA_PREFIX=str(own)) == (python, "VIRTUAL_ENV")
    assert ask(own, CONDA_PREFIX=str(other), CONDA_DEFAULT_ENV="train") == (python, "CONDA_PREFIX")


def test_the_environment_that_faultlens_lives_in(own: Path, other: Path) -> None:
    """Not activated: it was called by its path, and the first Python on PATH is another one."""
    python, why = ask(own, PATH=f"{other}/bin:/usr/bin:/bin")
    assert (python, why) == (str(own / "bin" / "python"), "the virtual environment that faultlens is installed in")
    gone = ask(own, VIRTUAL_ENV="/nowhere", CONDA_PREFIX=str(other), CONDA_DEFAULT_ENV="base")
    assert gone[0] == python, "what was removed, and what conda activates in every shell, was chosen by nobody"


@pytest.mark.parametrize("mark", ["pipx_metadata.json", "uv-receipt.toml"])
def test_an_environment_that_is_for_faultlens_alone(own: Path, other: Path, mark: str) -> None:
    python = str(other / "bin" / "python")
    (own / mark).touch()
    try:
        assert ask(own, PATH=f"{other}/bin") == (python, "first on PATH")
        beside = next(own.glob("lib/python3*/site-packages")) / "tensorflow"
        beside.mkdir()
        assert ask(own, PATH=f"{other}/bin") == (
            str(own / "bin" / "python"),
            "faultlens is installed there, beside TensorFlow",
        )
        beside.rmdir()
    finally:
        (own / mark).unlink()


@pytest.mark.parametrize(
    ("words", "understood"),
    [
        (["-m", "pytest", "-x"], ["--", "-m", "pytest", "-x"]),
        (["-v", "-c", "print(1)", "-v"], ["-v", "--", "-c", "print(1)", "-v"]),
        (["--json", "-", "train.py"], ["--json", "-", "train.py"]),
        (["--json", "-", "-"], ["--json", "-", "--", "-"]),
        (["--python", "venv", "-Xdev", "train.py"], ["--python", "venv", "--", "-Xdev", "train.py"]),
        (["--hunt", "-m", "train"], ["--hunt=fence", "--", "-m", "train"]),
        (["train.py", "-m", "x"], ["train.py", "-m", "x"]),
        (["--", "ls", "-m"], ["--", "ls", "-m"]),
    ],
)
def test_where_the_program_begins(words: list[str], understood: list[str]) -> None:
    assert with_default(["run", *words]) == ["run", *understood]


def test_what_python_runs_and_what_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").touch()
    (tmp_path / "train.py").touch()
    for words in (["train.py", "-x"], ["-m", "train"], ["-"], ["package"]):
        command = resolve_command(words, sys.executable)
        assert (command.words, command.python and command.python.why) == ([sys.executable, *words], "--python")
    assert resolve_command(["ls", "-m"]) == (["ls", "-m"], None)


def test_what_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("python", "their-tool"):
        (tmp_path / "bin" / name).symlink_to(sys.executable)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    for word, said in (
        ("data", "it is a folder"),
        ("gone.py", "there is no such file"),
        ("their-tool", f"Write {tmp_path}/bin/their-tool, or -m their-tool"),
        ("gone", "no such program"),
    ):
        with pytest.raises(FaultlensError) as raised:
            resolve_command([word])
        assert said in str(raised.value)


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["-c", "import sys; print(sys.argv)", "-v"], "", "['-c', '-v']"),
        (["-m", "this_module", "1"], "", "this_module 1"),
        (["-", "2"], "import sys; print(sys.argv)", "['-', '2']"),
        (["-u", "this_module.py", "3"], "", "this_module 3"),
    ],
)
def test_it_runs_as_python_does(tmp_path: Path, words: list[str], given: str, said: str) -> None:
    (tmp_path / "this_module.py").write_text("import sys\nprint('this_module', *sys.argv[1:])\n")
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "run", "-v", *words],
        input=given,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, f"{said}\n")
    assert done.stderr.startswith("faultlens: Python: ")


def test_the_demo_shows_the_command_that_it_runs() -> None:
    """Whatever is active in the shell, it works when typed."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    said = subprocess.run(["make", "-n", "demo"], cwd=SOURCES.parent, capture_output=True, text=True, check=True)
    shown = re.findall(r"echo '\$ (.+)'", said.stdout)
    assert shown and any(line.startswith(f"{shown[0]} ||") for line in said.stdout.splitlines())
    assert shown[0].startswith(".venv/bin/faultlens run --python .venv ")
