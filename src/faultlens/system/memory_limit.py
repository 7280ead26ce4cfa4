"""Which limit of memory is reached first, and how much of it is used?"""

from __future__ import annotations

import re

from faultlens.system.cgroup import Cgroup, Room
from faultlens.system.procfs import read_text

MACHINE = "/proc/meminfo"
ALL_S = 1.0  # in seconds: how often all limits are looked at
_WANTED = re.compile(r"^(MemTotal|MemAvailable|SwapFree): +(\d+) kB", re.M)


def tightest_room(group: Cgroup | None) -> Room | None:
    """That of the control group, up the tree, or of the machine: where least is left. What the kernel can drop or swap
    out does not count as used."""
    rooms = [room for room in (group.memory_room() if group else None, _machine_room()) if room is not None]
    return min(rooms, key=lambda room: room.left, default=None)


class TightestRoom:
    """Looked at many times a second: in between, only the limit that was reached first at the last full look."""

    def __init__(self, group: Cgroup | None) -> None:
        self._group = group
        self._room: Room | None = None
        self._next = 0.0

    def look(self, seconds: float) -> Room | None:
        if self._room is None or seconds >= self._next:
            self._room, self._next = tightest_room(self._group), seconds + ALL_S
        elif self._group is not None and self._room.where != MACHINE:
            self._room = self._group.looked_at_again(self._room)
        else:
            self._room = _machine_room()
        return self._room


def _machine_room() -> Room | None:
    memory = {name: int(number) << 10 for name, number in _WANTED.findall(read_text(MACHINE) or "")}
    if "MemTotal" not in memory or "MemAvailable" not in memory:
        return None
    total = memory["MemTotal"]
    return Room(limit=total + memory.get("SwapFree", 0), used=total - memory["MemAvailable"], where=MACHINE)
