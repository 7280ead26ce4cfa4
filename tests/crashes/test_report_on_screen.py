"""The report of a real crash on a real terminal of 80 columns and 24 lines."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

# Two functions and native code between them, at lines that change.
PROGRAM = """\
import sys
sys.setrecursionlimit(10**6)
def even(n):
    if n % 3:
        return odd(n + 1)
    return odd(n + 1)
def odd(n):
    return sorted([n], key=lambda _: even(n + 1))
even(0)
"""
VERDICT = "error[FL206] stack-overflow: "


def screen(words: list[str], folder: Path) -> list[str]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    left_out = {"COLUMNS", "LINES", "NO_COLOR"}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"FAULTLENS_HOME": str(folder / "home"), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "faultlens", *words]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env):
        os.close(theirs)
        said = b""
        while block := _read(ours):
            said += block
    os.close(ours)
    assert b"\x1b[" in said, "in colour"
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody has it open any more
        return b""


@pytest.fixture
def recursion(tmp_path: Path) -> list[str]:
    (tmp_path / "deep.py").write_text(PROGRAM)
    return ["--", sys.executable, "deep.py"]


def test_a_mutual_recursion_fits(recursion: list[str], tmp_path: Path) -> None:
    lines = screen(["run", *recursion], tmp_path)
    assert lines[0].startswith(VERDICT)
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(("    more  `faultlens show -v`", VERDICT))


def test_everything_ends_with_the_verdict_and_tells_one_round(recursion: list[str], tmp_path: Path) -> None:
    lines = screen(["run", "-v", *recursion], tmp_path)
    first = next(line for line in lines if line.startswith(VERDICT))
    assert lines[-1].startswith(first[:70]) and len(lines[-1]) <= 80
    assert any(re.search(r"… these \d+ calls \d+ times more", line) for line in lines)
    assert sum(" odd " in line for line in lines) < 10
