"""The system call in which a thread waits, and which processes of the program are at the other end of its pipe."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.records.crash import SystemCall, Thread

# read, readv, recvfrom, recvmsg; write, writev, sendto, sendmsg: their first argument is the descriptor.
READS, WRITES = frozenset({0, 19, 45, 47}), frozenset({1, 20, 44, 46})
SYS_WAIT4, SYS_WAITID, P_PID = 61, 247, 1
PIPE = "pipe:"


def with_calls(threads: Sequence[Thread], pid: int, registers: Mapping[int, Mapping[str, int]]) -> list[Thread]:
    """Of a process that stands still."""
    return [replace(thread, call=_call(pid, registers.get(thread.id, {}))) for thread in threads]


class _End(NamedTuple):
    """Of a pipe."""

    pid: int
    writes: bool


class PipeEnds:
    """Who has which end of which pipe open, in a family of processes."""

    def __init__(self, family: Iterable[int]) -> None:
        self._ends: dict[str, set[_End]] = {}
        for pid in family:
            for path in _descriptors(pid):
                with contextlib.suppress(OSError):
                    name = os.readlink(path)
                    if name.startswith(PIPE):
                        writes = bool(os.lstat(path).st_mode & stat.S_IWUSR)  # the mode it was opened in
                        self._ends.setdefault(name, set()).add(_End(pid, writes))

    def told(self, call: SystemCall) -> SystemCall:
        """With those that have the other end of its pipe."""
        if call.pipe is None:
            return call
        others = {end.pid for end in self._ends.get(call.pipe, ()) if end.writes != (call.name == "write")}
        return replace(call, processes=tuple(sorted(others)))


def _call(pid: int, registers: Mapping[str, int]) -> SystemCall | None:
    """None where the thread stands in none of these."""
    number, first, second = (registers.get(name, -1) for name in ("orig_rax", "rdi", "rsi"))
    if number in (SYS_WAIT4, SYS_WAITID):
        awaited = first & 0xFFFFFFFF if number == SYS_WAIT4 else second if first == P_PID else 0
        is_one = 0 < awaited < 1 << 31
        return SystemCall(name="wait", target="process", processes=(awaited,) if is_one else ())
    if number not in READS | WRITES:
        return None
    try:
        target = os.readlink(f"/proc/{pid}/fd/{first}")
    except OSError:
        return None
    return SystemCall(
        name="write" if number in WRITES else "read",
        target="pipe" if target.startswith(PIPE) else "socket" if target.startswith("socket:") else "file",
        pipe=target if target.startswith(PIPE) else None,
    )


def _descriptors(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    try:
        return [f"{folder}/{number}" for number in os.listdir(folder)]
    except OSError:
        return []
