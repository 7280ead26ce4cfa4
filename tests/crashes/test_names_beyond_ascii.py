"""Files, folders, functions and variables named in any script: the line is found all the same."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Runner

from faultlens.inspection.corefile.read import read_core
from faultlens.records.crash import Crash

PYTHONS = [sys.executable, *sorted(map(str, Path.home().glob(".pyenv/versions/3.1[0-3]*/bin/python")))]
# Latin-1 late and early in the path, the Basic Multilingual Plane, beyond it; names that are no ASCII in ASCII files.
FILES = ["prüf.py", "ü/in/a/folder/that/has/a/long/name/main.py", "模型.py", "😀/😀.py", "main.py"]
PROGRAM = """\
import os, signal, threading, time
def wärten():
    time.sleep(100)
class Modèle:
    def 学習(self):
        学習率, größe = 1, 2
        os.kill(os.getpid(), signal.SIGSEGV)
    def größe(self):
        self.学習()
threading.Thread(target=wärten, daemon=True).start()
time.sleep(0.2)
Modèle().größe()
"""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("python", PYTHONS)
def test_of_a_living_process(run: Runner, tmp_path: Path, python: str, name: str) -> None:
    crash = run([python, _program(tmp_path, name)]).died
    _check(crash, str(tmp_path / name))


@pytest.mark.parametrize("name", FILES)
def test_of_a_core(tmp_path: Path, name: str) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"cores do not go to the working directory: {pattern}")
    program = _program(tmp_path, name)
    folder = tmp_path / "cores"
    folder.mkdir()
    subprocess.run(
        [sys.executable, program],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),
    )
    _check(read_core(next(folder.glob("core*"))), str(program))


def test_of_a_hang(run: Runner, tmp_path: Path) -> None:
    program = _program(tmp_path, "ü/模型.py", PROGRAM.replace("os.kill(os.getpid(), signal.SIGSEGV)", "time.sleep(60)"))
    crash = run([sys.executable, program], options=["--timeout", "3"]).died
    _check(crash, str(program))
    assert all(thread.holds_gil is False for thread in crash.threads)


def _program(folder: Path, name: str, text: str = PROGRAM) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _check(crash: Crash, file: str) -> None:
    stacks = [
        [(frame.function, frame.line) for frame in thread.frames if frame.kind == "python" and frame.file == file]
        for thread in crash.threads
    ]
    assert [("学習", 7), ("größe", 9), ("<module>", 12)] in stacks
    assert [("wärten", 3)] in stacks
