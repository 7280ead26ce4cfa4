"""Which limit of memory is reached first, and how much of it is used?"""

from __future__ import annotations

import re

from faultlens.environment.cgroup import Cgroup, Room
from faultlens.environment.procfs import read_text

MACHINE = "/proc/meminfo"
_WANTED = re.compile(r"^(MemTotal|MemAvailable|SwapFree): +(\d+) kB", re.M)


def tightest_room(group: Cgroup | None) -> Room | None:
    """That of the control group, up the tree, or of the machine: where least is left. What the kernel can drop or swap
    out does not count as used."""
    rooms = [room for room in (group.memory_room() if group else None, _machine_room()) if room is not None]
    return min(rooms, key=lambda room: room.left, default=None)


def _machine_room() -> Room | None:
    memory = {name: int(number) << 10 for name, number in _WANTED.findall(read_text(MACHINE) or "")}
    if "MemTotal" not in memory or "MemAvailable" not in memory:
        return None
    total = memory["MemTotal"]
    return Room(limit=total + memory.get("SwapFree", 0), used=total - memory["MemAvailable"], where=MACHINE)
