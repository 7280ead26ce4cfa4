"""What the kernel still allows a program that is started here: memory, threads, and how it hands them out."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from faultlens.records.crash import Record
from faultlens.system.cgroup import Room, cgroup_of
from faultlens.system.machine import kilobytes
from faultlens.system.procfs import read_fields, read_number, read_text

CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 21, 24
NEVER_OVERCOMMIT = 2  # vm.overcommit_memory


class Allowance(Record, frozen=True):
    memory: Room | None = None  # of the control group where least is left
    tasks: Room | None = None
    all_tasks: Room | None = None  # of the whole machine
    user_tasks: int | None = None  # processes and threads of this user; None where RLIMIT_NPROC does not bind it
    commit: Room | None = None  # where memory is promised only as far as it is there
    swap_free: int | None = None
    max_map_count: int | None = None
    huge_pages: str | None = None  # "always", "madvise", "never"
    cpus: int = 1  # that the scheduler gives us
    may_mount: bool = False


def own_allowance() -> Allowance:
    """What we use ourselves is free again when the program runs."""
    group, memory, own = cgroup_of(), read_fields("/proc/meminfo", ":"), read_fields("/proc/self/status", ":")
    capabilities = int(own.get("CapEff") or "0", 16)
    return Allowance(
        memory=_without(group.memory_room() if group else None, kilobytes(own.get("RssAnon")) or 0),
        tasks=_without(group.task_room() if group else None, 1),
        all_tasks=_all_tasks(),
        user_tasks=None if _is_unbound(capabilities) else _tasks_of(os.getuid()) - 1,
        commit=_commit(memory),
        swap_free=kilobytes(memory.get("SwapFree")),
        max_map_count=read_number("/proc/sys/vm/max_map_count"),
        huge_pages=_chosen(read_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        cpus=len(os.sched_getaffinity(0)),
        may_mount=bool(capabilities >> CAP_SYS_ADMIN & 1),
    )


def _without(room: Room | None, ours: int) -> Room | None:
    return room and Room(limit=room.limit, used=max(room.used - ours, 0), where=room.where)


def _is_unbound(capabilities: int) -> bool:
    """RLIMIT_NPROC holds neither for root nor for those who may exceed limits."""
    return os.getuid() == 0 or bool(capabilities >> CAP_SYS_ADMIN & 1 or capabilities >> CAP_SYS_RESOURCE & 1)


def _tasks_of(user: int) -> int:
    """Those that can be seen: other containers may hold more of the same user."""
    found = 0
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if process.name.isdigit() and process.stat().st_uid == user:
                found += int(read_fields(process / "status", ":").get("Threads") or "0")
    return found


def _all_tasks() -> Room | None:
    limits = {
        name: limit
        for name in ("threads-max", "pid_max")
        if (limit := read_number(f"/proc/sys/kernel/{name}")) is not None
    }
    running = re.search(r"\d+/(\d+) ", read_text("/proc/loadavg") or "")
    if not limits or running is None:
        return None
    name = min(limits, key=lambda each: limits[each])
    return Room(limit=limits[name], used=int(running[1]), where=f"/proc/sys/kernel/{name}")


def _commit(memory: dict[str, str]) -> Room | None:
    if read_number("/proc/sys/vm/overcommit_memory") != NEVER_OVERCOMMIT:
        return None
    limit, used = kilobytes(memory.get("CommitLimit")), kilobytes(memory.get("Committed_AS"))
    return Room(limit=limit, used=used or 0, where="/proc/meminfo: CommitLimit") if limit is not None else None


def _chosen(text: str | None) -> str | None:
    """ "always [madvise] never" -> "madvise"."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None
