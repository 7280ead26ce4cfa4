"""The innermost lines of a living process, however deep its stack is."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from faultlens.inspection.code_lines import location_in_entries, location_in_pairs
from faultlens.inspection.innermost import MOST, innermost_lines
from faultlens.system.isolated import run_isolated

DEEP = """\
import sys
sys.setrecursionlimit(10**6)
def descend(depth):
    if depth == 0:
        stay()
    descend(depth - 1)
def stay():
    print("there", flush=True)
    while True:
        pass
descend({depth})
"""


@pytest.mark.parametrize("depth", [2, 20_000 if sys.version_info >= (3, 11) else 5000])
def test_of_a_recursion(tmp_path: Path, depth: int) -> None:
    program = tmp_path / "main.py"
    program.write_text(DEEP.format(depth=depth))
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        process.stdout.readline()
        frames = run_isolated(30, 1 << 30, innermost_lines, process.pid)
    finally:
        process.kill()
        process.communicate()
    if not frames:
        pytest.skip("this machine does not allow ptrace, or this Python is not known")
    assert frames[0].function == "stay"
    assert frames[0].line in (9, 10)
    assert [(frame.function, frame.line, frame.file) for frame in frames[2:4]] == [("descend", 6, str(program))] * 2
    assert len(frames) == min(depth + 3, MOST)


def test_without_python() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert run_isolated(30, 1 << 30, innermost_lines, process.pid) == ()
        process.kill()


def test_lines_and_columns_are_those_that_python_itself_tells() -> None:
    locate = location_in_entries if sys.version_info >= (3, 11) else location_in_pairs
    source = Path(argparse.__file__).read_text()
    seen = 0
    for code in _all_code(compile(source, argparse.__file__, "exec")):
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                found = locate(code.co_linetable, code.co_firstlineno, offset)
                assert (found.line if found else None) == line
                seen += 1
        for index, (line, end_line, column, end_column) in enumerate(
            code.co_positions() if sys.version_info >= (3, 11) else ()
        ):
            found = locate(code.co_linetable, code.co_firstlineno, 2 * index)
            if found and column is not None:
                columns = (column, end_column) if line == end_line else (None, None)
                assert (found.column, found.end_column) == columns
    assert seen > 1000


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)
