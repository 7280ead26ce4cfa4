"""Programs end under faultlens as they do alone, also where the address space is nearly too small for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs" / "undisturbed"
UNDER = (sys.executable, "-m", "faultlens", "run", "--quiet", "--no-save", "--")
MIB = 1 << 20
OWN = 3 * MIB // 2  # the address space that the agent may take, with eight threads (docs/footprint.md)
PRECISION = 64 << 10

Ending = tuple[int, bytes]  # status and output


class Limited:
    """A program under `ulimit -v`, alone and under faultlens."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        self._command = tuple(map(str, command))
        self.ending = cache(self._ending)

    def _ending(self, limit: int, under: bool) -> Ending:
        words = [*(UNDER if under else ()), "prlimit", f"--as={limit}", "--core=0", *self._command]
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
        done = subprocess.run(words, capture_output=True, timeout=60, env=variables)
        return done.returncode, done.stdout

    def edge(self, low: int, high: int, under: bool) -> int:
        """The smallest limit that it ends well with."""
        while high - low > PRECISION:
            middle = (low + high) // 2 & ~4095
            low, high = (low, middle) if self.ending(middle, under)[0] == 0 else (middle, high)
        return high

    def check(self, limit: int) -> None:
        """It ends as alone with this limit, or with one that is lower by at most what the agent takes."""
        found = self.ending(limit, True)
        alone = [self.ending(limit - quarter * OWN // 4, False) for quarter in range(5)]
        assert found in alone, f"limit {limit}: {found} and not one of {alone}"


def _compiled(source: str, folder: Path, *flags: str) -> Path:
    binary = folder / Path(source).stem
    compiler = "g++" if source.endswith(".cc") else "gcc"
    subprocess.run([compiler, "-O1", "-g", "-pthread", PROGRAMS / source, "-o", binary, *flags], check=True)
    return binary


def _compare(program: Limited, low: int, high: int) -> None:
    alone, under = (program.edge(low, high, way) for way in (False, True))
    assert 0 <= under - alone + PRECISION <= OWN + 2 * PRECISION, (alone, under)
    for step in (-8, -4, -2, -1, 0, 1, 2, 4):
        program.check(alone + step * MIB)


@pytest.mark.timeout(300)
def test_a_program_with_threads(tmp_path: Path) -> None:
    _compare(Limited([_compiled("threads_and_memory.c", tmp_path)]), 10 * MIB, 200 * MIB)


@pytest.mark.timeout(300)
def test_numpy() -> None:
    pytest.importorskip("numpy")
    multiply = "import numpy; a = numpy.ones((300, 300)); print((a @ a).sum())"
    _compare(Limited([sys.executable, "-c", multiply]), 40 * MIB, 400 * MIB)


@pytest.mark.timeout(300)
def test_an_exception_where_no_memory_is_left(tmp_path: Path) -> None:
    """Who throws is looked up without memory: what the loader allocates or frees would decide how the program ends."""
    library = _compiled("no_memory_left.cc", tmp_path, "-shared", "-fPIC")
    program = Limited([sys.executable, "-c", f"import ctypes; print(ctypes.CDLL({str(library)!r}).use_up())"])
    for limit in (48, 64, 80, 96, 112):
        assert program.ending(limit * MIB, True) == program.ending(limit * MIB, False)
