"""Threads that the agent made stand still: what they were interrupted at."""

from __future__ import annotations

import ctypes
import struct

from faultlens.agent.layout import GREGS, Parked
from faultlens.inspection.death import ParkedThreads
from faultlens.inspection.memory import Memory

MAX_PARKED = 4096
_UC_GREGS = 40  # of ucontext_t: flags, link and stack come before
_REGISTERS = struct.Struct(f"<{len(GREGS)}Q")


def interrupted_registers(memory: Memory, threads: ParkedThreads) -> dict[int, dict[str, int]]:
    """By thread id, as the kernel wrote them when it interrupted the thread."""
    size = ctypes.sizeof(Parked)
    table = memory.read(threads.address, size * min(threads.number, MAX_PARKED)) if threads.number else b""
    found = {}
    for index in range(len(table) // size):
        entry = Parked.from_buffer_copy(table, index * size)
        saved = memory.read(entry.context + _UC_GREGS, _REGISTERS.size)
        if entry.tid and len(saved) == _REGISTERS.size:
            found[entry.tid] = dict(zip(GREGS, _REGISTERS.unpack(saved), strict=True))
    return found
