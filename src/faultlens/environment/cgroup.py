"""Which control group a process is in, what it may use, and what its counters say (v1 and v2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faultlens.crash import CgroupState
from faultlens.environment.procfs import read_fields, read_number, read_text

UNLIMITED = 1 << 60  # v1 writes "no limit" as a number near 2**63


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


class Cgroup:
    """The folders of one group; `state` reads them anew."""

    def __init__(self, version: int, memory: Path | None, pids: Path | None) -> None:
        self.version = version
        self.memory = memory
        self.pids = pids

    def state(self) -> CgroupState:
        read = _read_v1 if self.version == 1 else _read_v2
        folder = self.memory or self.pids
        return read(str(folder), self.memory, self.pids)

    def memory_used(self) -> int | None:
        name = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return read_number(self.memory / name) if self.memory else None


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
