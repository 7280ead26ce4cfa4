"""A function that ends in a call which never returns: the return address lies behind it, in the next one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Runner

SOURCE = """
#include <stdlib.h>
__attribute__((noinline, noreturn)) void give_up(void) { abort(); }
__attribute__((noinline)) void last_call(void) { __asm__ volatile("nop"); give_up(); }
__attribute__((noinline)) int innocent(int x) { return x * 3; }
"""
PACKED = ("-Os", "-falign-functions=1", "-fno-toplevel-reorder", "-fno-optimize-sibling-calls", "-fno-ipa-icf")


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_it_is_named_and_not_the_next_one(run: Runner, tmp_path: Path, capture: str) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    library = tmp_path / "calls.so"
    subprocess.run(
        ["gcc", *PACKED, "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=SOURCE.encode(), check=True
    )
    died = run(f"import ctypes; ctypes.CDLL({str(library)!r}).last_call()", options=["--capture", capture]).died
    thread = died.crashed_thread
    assert thread is not None
    assert [frame.function for frame in thread.frames if frame.library == str(library)] == ["give_up", "last_call"]
