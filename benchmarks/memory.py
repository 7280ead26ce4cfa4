"""The memory of processes, looked at from outside while they run."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measure import Command, clean_environment

INTERVAL_S = 0.02


def status_kib(pid: int, name: str) -> int | None:
    """A number of /proc/PID/status, such as VmHWM; None when the process has ended."""
    return _kib(Path(f"/proc/{pid}/status"), name)


def pss_kib(pid: int) -> int | None:
    """Resident memory, pages that several processes share counted once."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _kib(path: Path, name: str) -> int | None:
    with contextlib.suppress(OSError):
        if found := re.search(rf"^{name}:\s+(\d+) kB", path.read_text(), re.M):
            return int(found[1])
    return None


class Peak(NamedTuple):
    """Bytes that a command and its children occupied at most, and its wall time with our looks at it."""

    resident: int
    anonymous: int  # not backed by files
    seconds: float


def peak_of_tree(command: Command) -> Peak:
    start = time.perf_counter()
    process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    resident = anonymous = 0
    while process.poll() is None:
        pids = list(_family(process.pid))
        resident = max(resident, sum(pss_kib(pid) or 0 for pid in pids))
        anonymous = max(anonymous, sum(status_kib(pid, "RssAnon") or 0 for pid in pids))
        time.sleep(INTERVAL_S)
    return Peak(resident * 1024, anonymous * 1024, time.perf_counter() - start)


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))
