"""What a Python knows of its search path, read from its memory while it stands still."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.inspection.maps import parse_maps
from faultlens.inspection.memory import ProcessMemory
from faultlens.inspection.python_state import read_state

PROGRAM = r"""
import sys
sys.path[:0] = ["relative", "/h\xf6me", "/\u4e2d\u6587", "/\U0001f600"]
sys.path.append(b"/bytes")
print(ascii([[each for each in sys.path if isinstance(each, str)], sys.prefix, sys.executable]), flush=True)
sys.stdin.read()
"""


def pythons() -> list[str]:
    """This one, the one below it, the system's, and whatever else a version manager has beside it."""
    beside = sorted(Path(sys.base_prefix).parent.glob("3.[1-9][0-9]*/bin/python"))
    found = [sys.executable, f"{sys.base_prefix}/bin/python3", "/usr/bin/python3", *map(str, beside)]
    return [path for path in dict.fromkeys(found) if Path(path).exists()]


@pytest.mark.parametrize("python", pythons())
def test_the_search_path_is_the_one_that_it_has(python: str) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([python, "-c", PROGRAM], text=True, **pipes) as process:
        assert process.stdin and process.stdout
        said = ast.literal_eval(process.stdout.readline())
        with ProcessMemory(process.pid) as memory:
            mappings = parse_maps(Path(f"/proc/{process.pid}/maps").read_text())
            found = read_state(memory, mappings, os.readlink(f"/proc/{process.pid}/exe"))
        process.stdin.close()
    assert found is not None
    assert [list(found.path), found.prefix, found.executable] == said


def test_a_program_without_python_has_none() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        assert process.stdin
        with ProcessMemory(process.pid) as memory:
            mappings = parse_maps(Path(f"/proc/{process.pid}/maps").read_text())
            assert read_state(memory, mappings, os.readlink(f"/proc/{process.pid}/exe")) is None
        process.stdin.close()
