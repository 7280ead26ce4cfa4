"""Code that crashes, hangs or eats memory in a child does no harm."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import pytest

from faultlens.system.isolated import IsolatedError, run_isolated

GIGABYTE = 1 << 30


def test_the_result_comes_back_whole() -> None:
    assert run_isolated(10, GIGABYTE, lambda size: b"x" * size, 5_000_000) == b"x" * 5_000_000


def test_an_exception_is_told() -> None:
    with pytest.raises(IsolatedError, match=r"ZeroDivisionError: .* by zero"):
        run_isolated(10, GIGABYTE, lambda: 1 // 0)


def test_a_crash_is_told() -> None:
    with pytest.raises(IsolatedError, match="SIGSEGV"):
        run_isolated(10, GIGABYTE, ctypes.string_at, 8)


def test_a_hang_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(IsolatedError, match=r"longer than 0\.2 s"):
        run_isolated(0.2, GIGABYTE, time.sleep, 60)
    assert time.monotonic() - start < 5


def test_memory_is_limited() -> None:
    with pytest.raises(IsolatedError, match="MemoryError"):
        run_isolated(10, GIGABYTE, lambda: len(bytearray(4 * GIGABYTE)))


def test_a_quiet_exit_is_told() -> None:
    with pytest.raises(IsolatedError, match="without a result"):
        run_isolated(10, GIGABYTE, os._exit, 3)


def test_no_child_is_left() -> None:
    before = _children()
    run_isolated(10, GIGABYTE, int, "7")
    assert _children() == before


def _children() -> set[str]:
    """Of this process; other tests may have left some, such as a browser's driver."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
