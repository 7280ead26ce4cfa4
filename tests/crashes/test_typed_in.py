"""A program without a file, given with `-c` or on standard input, has lines all the same."""

from __future__ import annotations

import sys

import pytest
from conftest import Runner

from faultlens.inspection.frames import user_frame

ABORTS = "import os\ndef f():\n    os.abort()\nf()\n"


def test_code_on_the_command_line(run: Runner) -> None:
    done = run("import ctypes; ctypes.string_at(0xdeadbeef000)")
    frame = user_frame(done.died)
    assert frame
    assert (frame.file, frame.line, frame.function) == ("<string>", 1, "<module>")
    assert "at  <string>:1  in <module>\n\n" in done.stderr  # and no source, which is not known


@pytest.mark.parametrize("words", [["-"], []])
def test_code_on_standard_input(run: Runner, words: list[str]) -> None:
    done = run([sys.executable, *words], input=ABORTS.encode())
    assert "at  <stdin>:3  in f" in done.stderr
    assert "was called by f at <stdin>:3" in done.stderr
    assert "native code" not in done.stderr


def test_a_cell_of_a_notebook(run: Runner) -> None:
    cell = "import os\\nos.abort()"
    done = run(f"exec(compile('{cell}', '/tmp/ipykernel_5713/1932235641.py', 'exec'))")
    assert "at  notebook cell:2  in <module>" in done.stderr
