"""Which limit of memory is reached first, and how much of it is used?"""

from __future__ import annotations

from faultlens.environment.cgroup import Cgroup, Room
from faultlens.environment.machine import kilobytes
from faultlens.environment.procfs import read_fields

MACHINE = "/proc/meminfo"


def tightest_room(group: Cgroup | None) -> Room | None:
    """That of the control group, up the tree, or of the machine: where least is left. What the kernel can drop or swap
    out does not count as used."""
    rooms = [room for room in (group.memory_room() if group else None, _machine_room()) if room is not None]
    return min(rooms, key=lambda room: room.left, default=None)


def _machine_room() -> Room | None:
    memory = read_fields(MACHINE, ":")
    total, available = kilobytes(memory.get("MemTotal")), kilobytes(memory.get("MemAvailable"))
    if total is None or available is None:
        return None
    return Room(limit=total + (kilobytes(memory.get("SwapFree")) or 0), used=total - available, where=MACHINE)
