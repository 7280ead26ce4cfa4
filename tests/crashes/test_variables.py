"""What the variables of the user's line were: numbers and sizes, no texts and no secrets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PROGRAM = """\
import ctypes

LIMIT = -12345


def fill(address, n, scale, names):
    sizes = [1, -2, 3]
    label = "not to be kept"
    api_key = 4711
    flag = True
    return ctypes.string_at(address, n), sizes, label, api_key, flag, scale, names


def main():
    fill(LIMIT, 2**30, 0.5, ["a"] * 20)


main()
"""


@pytest.fixture
def crashed(run, tmp_path: Path):
    (tmp_path / "main.py").write_text(PROGRAM)
    return run


def variables(crash, function: str) -> dict[str, object]:
    frames = (frame for thread in crash.threads for frame in thread.frames)
    found = next(frame.variables for frame in frames if frame.function == function)
    return {variable.name: variable for variable in found}


def test_numbers_and_sizes_of_the_innermost_frames(crashed) -> None:
    done = crashed([sys.executable, "main.py"])
    of_fill = variables(done.crash, "fill")
    assert {name: each.value for name, each in of_fill.items() if each.value is not None} == {
        "address": -12345,
        "n": 2**30,
        "scale": 0.5,
        "flag": 1,
    }
    assert of_fill["sizes"].numbers == (1, -2, 3)
    assert (of_fill["names"].length, of_fill["label"].length) == (20, 14)
    assert "api_key" not in of_fill
    assert variables(done.crash, "<module>")["LIMIT"].value == -12345
    assert "where address = -12345 · n = 1073741824" in done.stderr


def test_no_contents_leaves_them_out(crashed) -> None:
    done = crashed([sys.executable, "main.py"], options=["--no-contents"])
    assert all(not frame.variables for thread in done.crash.threads for frame in thread.frames)
