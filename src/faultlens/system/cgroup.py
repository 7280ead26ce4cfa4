"""Which control group a process is in, what it may use, and what its counters say (v1 and v2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.records.crash import CgroupState, Record
from faultlens.system.machine import kilobytes
from faultlens.system.procfs import read_fields, read_number, read_text

UNLIMITED = 1 << 60  # v1 writes "no limit" as a number near 2**63


class MemoryFiles(NamedTuple):
    limit: str
    used: str
    swap: str
    files: re.Pattern[str]  # counters of memory.stat: what is on a disk too, and can be dropped


V1 = MemoryFiles(
    limit="memory.limit_in_bytes",
    used="memory.usage_in_bytes",
    swap="memory.memsw.limit_in_bytes",
    files=re.compile(r"^total_(?:in)?active_file (\d+)$", re.M),
)
V2 = MemoryFiles(
    limit="memory.max",
    used="memory.current",
    swap="memory.swap.max",
    files=re.compile(r"^(?:active_file|inactive_file|slab_reclaimable) (\d+)$", re.M),
)


def cgroup_of(pid: int | str = "self") -> Cgroup | None:
    """The group of a process; None where the machine has no control groups that can be read."""
    memory, pids, version = None, None, 2
    mounts = _mounts()
    for line in (read_text(f"/proc/{pid}/cgroup") or "").splitlines():
        hierarchy, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        for controller in controllers.split(",") if hierarchy != "0" else ["unified"]:
            mount = mounts.get(controller)
            if mount is None:
                continue
            folder = _existing(mount, path)
            if controller == "memory":
                memory, version = folder, 1
            elif controller == "pids":
                pids = folder
            elif controller == "unified" and memory is None and (folder / "memory.current").exists():
                memory = pids = folder
    if memory is None and pids is None:
        return None
    return Cgroup(version, memory, pids)


class Room(Record, frozen=True):
    """A limit that the processes of a group share, and how much of it they use."""

    limit: int
    used: int
    where: str  # the file with the limit

    @property
    def left(self) -> int:
        return self.limit - self.used


class Cgroup:
    """The folders of one group; `state` reads them anew."""

    def __init__(self, version: int, memory: Path | None, pids: Path | None) -> None:
        self.version = version
        self.memory = memory
        self.pids = pids
        self._memory_levels = tuple(_upwards(memory))

    def state(self) -> CgroupState:
        read = _read_v1 if self.version == 1 else _read_v2
        folder = self.memory or self.pids
        return read(str(folder), self.memory, self.pids)

    def memory_used(self) -> int | None:
        name = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return read_number(self.memory / name) if self.memory else None

    def memory_room(self) -> Room | None:
        """Where least is left up the tree; what the kernel can drop or swap out does not count as used."""
        rooms = _memory_rooms(self._memory_levels, V1 if self.version == 1 else V2)
        return min(rooms, key=lambda room: room.left, default=None)

    def looked_at_again(self, room: Room) -> Room:
        """The same limit, without asking for it: memory is watched many times a second."""
        used = _memory_used(Path(room.where).parent, V1 if self.version == 1 else V2)
        return Room(limit=room.limit, used=used, where=room.where)

    def task_room(self) -> Room | None:
        """Processes and threads."""
        rooms = [
            Room(limit=limit, used=read_number(level / "pids.current") or 0, where=str(level / "pids.max"))
            for level in _upwards(self.pids)
            if (limit := read_number(level / "pids.max")) is not None
        ]
        return min(rooms, key=lambda room: room.left, default=None)


def _memory_rooms(levels: Iterable[Path], names: MemoryFiles) -> Iterator[Room]:
    for level in levels:
        limit = _limit(level / names.limit)
        if limit is None:
            continue
        swap, allowed = _swap_free(), _limit(level / names.swap)
        if allowed is not None:  # v1 limits the sum of memory and swap
            swap = min(swap, max(allowed - limit if names is V1 else allowed, 0))
        yield Room(limit=limit + swap, used=_memory_used(level, names), where=str(level / names.limit))


def _memory_used(level: Path, names: MemoryFiles) -> int:
    """What the kernel can drop does not count."""
    files = sum(map(int, names.files.findall(read_text(level / "memory.stat") or "")))
    return max((read_number(level / names.used) or 0) - files, 0)


def _limit(path: Path) -> int | None:
    limit = read_number(path)
    return limit if limit is not None and limit < UNLIMITED else None


def _swap_free() -> int:
    return kilobytes(read_fields("/proc/meminfo", ":").get("SwapFree")) or 0


def _read_v1(path: str, memory: Path | None, pids: Path | None) -> CgroupState:
    return CgroupState(
        version=1,
        path=path,
        memory_limit=_tightest(memory, "memory.limit_in_bytes"),
        memory_used=_number(memory, "memory.usage_in_bytes"),
        memory_peak=_number(memory, "memory.max_usage_in_bytes"),
        memory_failures=_number(memory, "memory.failcnt"),
        oom_kills=_counter(memory, "memory.oom_control", "oom_kill"),
        pids_limit=_tightest(pids, "pids.max"),
        pids_used=_number(pids, "pids.current"),
        pids_failures=_counter(pids, "pids.events", "max"),
    )


def _read_v2(path: str, memory: Path | None, pids: Path | None) -> CgroupState:
    return CgroupState(
        version=2,
        path=path,
        memory_limit=_tightest(memory, "memory.max"),
        memory_used=_number(memory, "memory.current"),
        memory_peak=_number(memory, "memory.peak"),
        memory_failures=_counter(memory, "memory.events", "max"),
        oom_kills=_counter(memory, "memory.events", "oom_kill"),
        pids_limit=_tightest(pids, "pids.max"),
        pids_used=_number(pids, "pids.current"),
        pids_failures=_counter(pids, "pids.events", "max"),
    )


def _number(folder: Path | None, name: str) -> int | None:
    return read_number(folder / name) if folder else None


def _counter(folder: Path | None, name: str, field: str) -> int | None:
    text = read_fields(folder / name).get(field, "") if folder else ""
    return int(text) if text.isdigit() else None


def _tightest(folder: Path | None, name: str) -> int | None:
    """The smallest limit from here up to the root: each of them holds."""
    limits = [limit for level in _upwards(folder) if (limit := read_number(level / name)) is not None]
    smallest = min(limits, default=UNLIMITED)
    return smallest if smallest < UNLIMITED else None


def _upwards(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield from (level for level in (folder, *folder.parents) if (level / "cgroup.procs").exists())


def _existing(mount: Path, path: str) -> Path:
    """Inside a container the path is the host's; the mount itself is then the group."""
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount


def _mounts() -> dict[str, Path]:
    """Controller (or "unified") -> mount point."""
    found: dict[str, Path] = {}
    for line in (read_text("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, details = left.split(), right.split()
        if len(fields) < 5 or len(details) < 3:
            continue
        if details[0] == "cgroup2":
            found["unified"] = Path(fields[4])
        elif details[0] == "cgroup":
            for controller in details[2].split(","):
                found[controller] = Path(fields[4])
    return found
