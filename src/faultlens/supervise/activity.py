"""What a program did shortly before its time limit: the difference between two looks at its counters in /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.diagnosis.evidence.standing import BUSY, MOVES
from faultlens.inspection.progress import Loop
from faultlens.inspection.system_calls import PipeEnds
from faultlens.inspection.tcp import tcp_traffic
from faultlens.records.crash import Activity, Crash
from faultlens.system.procfs import read_fields, read_text

LONGEST_S = 10.0  # between the looks: long enough for slow loops, short enough to tell how it was at the end
SLICES = 5  # of that time, to tell when it last did something
TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted from the one behind the name.
UTIME, STIME, CUTIME, CSTIME = 11, 12, 13, 14


class _Glance(NamedTuple):
    """Counters of one process, since it began."""

    time: float
    cpu: dict[int, float]  # of each thread
    cpu_of_all: float  # of threads that have ended and children that were waited for, too
    moved: dict[int, int]  # bytes read or written, by each thread
    read: int | None  # by all
    written: int | None
    steps: int | None


class LastMoments:
    """`loop` tells how far a process has come, where that is known."""

    def __init__(self, timeout: float, loop: Callable[[int], Loop | None]) -> None:
        self.timeout = timeout
        self.next_look = max(timeout - LONGEST_S, timeout / 2)
        self._slice = (timeout - self.next_look) / SLICES
        self._loop = loop
        self._before: dict[int, _Glance] = {}
        self._last: dict[int, _Glance] = {}
        self._pipes: PipeEnds | None = None  # of the processes that were looked at last
        self._worked: dict[int, float] = {}  # when the last slice ended in which a process did something …
        self._wrote: dict[int, float] = {}  # … or wrote at least a little

    def look(self, family: Sequence[int]) -> None:
        """Now and then until the limit, and at it: then with the processes that are looked into."""
        now = {pid: _glance(pid, self._loop(pid)) for pid in family}
        self._before = self._before or now
        for pid, glance in now.items():
            since = _between(self._last[pid], glance) if pid in self._last else None
            if since is None or _has_worked(since):
                self._worked[pid] = glance.time
            if since is None or since.written:
                self._wrote[pid] = glance.time
        self._last = now
        self._pipes = None
        self.next_look = min(self.next_look + self._slice, self.timeout)

    def told(self, crash: Crash) -> Crash:
        """With what the process and its threads did between the two looks."""
        before, after = (glances.get(crash.pid or 0) for glances in (self._before, self._last))
        if before is None or after is None:
            return crash
        self._pipes = self._pipes or PipeEnds(self._last)
        threads = (
            replace(
                thread,
                call=self._pipes.told(thread.call) if thread.call else None,
                cpu=_more(before.cpu, after.cpu, thread.id),
                moved=_more(before.moved, after.moved, thread.id),
            )
            for thread in crash.threads
        )
        idle = round(after.time - self._worked[crash.pid or 0], 3)
        quiet = round(after.time - self._wrote[crash.pid or 0], 3)
        activity = replace(_between(before, after), limit=self.timeout, idle=idle, quiet=quiet)
        return replace(crash, threads=tuple(threads), activity=activity)


def _has_worked(activity: Activity) -> bool:
    moved = (activity.read or 0) + (activity.written or 0)
    return bool(activity.steps) or activity.cpu >= BUSY * activity.seconds or moved >= MOVES * activity.seconds


def _between(before: _Glance, after: _Glance) -> Activity:
    threads = sum(cpu - before.cpu.get(tid, 0.0) for tid, cpu in after.cpu.items())
    return Activity(
        limit=0.0,
        seconds=round(after.time - before.time, 3),
        cpu=round(max(threads, after.cpu_of_all - before.cpu_of_all), 3),
        read=_difference(before.read, after.read),
        written=_difference(before.written, after.written),
        steps=_difference(before.steps or 0, after.steps),
    )


def _glance(pid: int, loop: Loop | None) -> _Glance:
    cpu, moved = {}, {}
    for tid in _threads(pid):
        nanoseconds = (read_text(f"/proc/{pid}/task/{tid}/schedstat") or "").split()
        cpu[tid] = int(nanoseconds[0]) / 1e9 if nanoseconds else _cpu(f"/proc/{pid}/task/{tid}/stat")
        own = read_fields(f"/proc/{pid}/task/{tid}/io", ":")
        moved[tid] = _read(own) + _written(own)
    whole = read_fields(f"/proc/{pid}/io", ":")
    received, sent = tcp_traffic(pid)
    return _Glance(
        time=time.monotonic(),
        cpu=cpu,
        cpu_of_all=_cpu(f"/proc/{pid}/stat"),
        moved=moved,
        read=_read(whole) + received if whole else None,
        written=_written(whole) + sent if whole else None,
        steps=loop.made if loop else None,
    )


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _cpu(path: str) -> float:
    """Seconds, in hundredths."""
    fields = (read_text(path) or "").rpartition(")")[2].split()
    return sum(int(fields[at]) for at in (UTIME, STIME, CUTIME, CSTIME)) / TICKS if len(fields) > CSTIME else 0.0


def _read(counters: dict[str, str]) -> int:
    """System calls count in rchar, pages of mapped files in read_bytes."""
    return max(int(counters.get("rchar", 0)), int(counters.get("read_bytes", 0)))


def _written(counters: dict[str, str]) -> int:
    return int(counters.get("wchar", 0))


def _more(
    before: dict[int, float] | dict[int, int], after: dict[int, float] | dict[int, int], tid: int
) -> float | None:
    return round(after[tid] - before.get(tid, 0), 4) if tid in after else None


def _difference(before: int | None, after: int | None) -> int | None:
    return max(after - before, 0) if before is not None and after is not None else None
