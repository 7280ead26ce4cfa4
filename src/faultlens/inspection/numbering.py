"""What is the number of a process here that calls itself by another, in a namespace of its own?"""

from __future__ import annotations

import contextlib
from pathlib import Path

from faultlens.inspection import process
from faultlens.inspection.death import Death
from faultlens.system.procfs import read_fields, read_text


def only_child(pid: int) -> int:
    """The process that stands below a guard; the guard itself while there is none."""
    with contextlib.suppress(OSError, ValueError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else pid
    below = process.descendants(pid)  # a kernel without these lists
    return below[0] if below else pid


def seen_from_here(own: int, below: int) -> int:
    """Of the process below this one that calls itself `own`."""
    for pid in process.descendants(below):
        if read_fields(f"/proc/{pid}/status", ":").get("NSpid", "").split()[-1:] == [str(own)]:
            return pid
    return own


def death_seen_from_here(death: Death, below: int) -> Death:
    """With the numbers of its process and threads."""
    return _renumbered(death, seen_from_here(death.pid, below))


def _renumbered(death: Death, pid: int) -> Death:
    threads = thread_numbers(pid)
    faults = [fault._replace(thread=threads.get(fault.thread, fault.thread)) for fault in death.faults]
    throws = [throw._replace(thread=threads.get(throw.thread, throw.thread)) for throw in death.throws]
    return death._replace(pid=pid, faults=tuple(faults), throws=tuple(throws))


def death_of(death: Death, inode: int) -> Death | None:
    """The same, of the process that has the memory with this inode mapped: others may have the number, too."""
    if has_mapped(death.pid, inode):
        return death
    for pid in process.descendants(1):
        numbers = read_fields(f"/proc/{pid}/status", ":").get("NSpid", "").split()
        if len(numbers) > 1 and numbers[-1] == str(death.pid) and has_mapped(pid, inode):
            return _renumbered(death, pid)
    return None


def has_mapped(pid: int, inode: int) -> bool:
    lines = (read_text(f"/proc/{pid}/maps") or "").splitlines()
    return any("/memfd:faultlens" in line and line.split()[4:5] == [str(inode)] for line in lines)


def thread_numbers(pid: int) -> dict[int, int]:
    """What the threads of a process call themselves, and their numbers here. Empty where that is the same."""
    found = {}
    for entry in _entries(Path(f"/proc/{pid}/task")):
        numbers = read_fields(entry / "status", ":").get("NSpid", "").split()
        if len(numbers) < 2:
            return {}
        found[int(numbers[-1])] = int(entry.name)
    return found


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []
