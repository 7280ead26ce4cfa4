"""What a forked process sets for itself, read back from the kernel."""

from __future__ import annotations

import ctypes
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from faultlens.system import own_process
from faultlens.system.isolated import run_isolated
from faultlens.system.procfs import read_fields

PR_GET_PDEATHSIG = 2
PR_GET_DUMPABLE = 3


def settled() -> tuple[int, int, str, str, tuple[int, int]]:
    libc, number = ctypes.CDLL(None), ctypes.c_int()
    own_process.die_with_parent()
    own_process.killed_first()
    own_process.no_core_file()
    own_process.named(b"helper")
    libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(number), 0, 0, 0)
    score, name = (Path("/proc/self", each).read_text().strip() for each in ("oom_score_adj", "comm"))
    own_process.not_dumpable()
    return number.value, libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), score, name, resource.getrlimit(resource.RLIMIT_CORE)


def test_the_kernel_knows_all_settings() -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert run_isolated(10.0, 1 << 30, settled) == (signal.SIGKILL, 0, "1000", "helper", (0, hard))


def test_it_ends_with_its_parent() -> None:
    code = (
        "import os, time\nfrom faultlens.system import own_process\npid = os.fork()\n"
        "if pid:\n    print(pid, flush=True); time.sleep(1)\n"
        "else:\n    own_process.die_with_parent(); time.sleep(60)"
    )
    child = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    deadline = time.monotonic() + 10
    while not has_ended(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert has_ended(child)


def has_ended(pid: int) -> bool:
    """A zombie has, too: nobody may wait for it here."""
    return read_fields(f"/proc/{pid}/status", ":").get("State", "Z").startswith("Z")
