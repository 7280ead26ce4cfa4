"""What is the number of a process here that calls itself by another, in a namespace of its own?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from faultlens.capture import process
from faultlens.capture.death import Death
from faultlens.environment.procfs import read_fields


def only_child(pid: int) -> int:
    """The process that stands below a guard; the guard itself while there is none."""
    with contextlib.suppress(OSError, ValueError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else pid
    below = process.descendants(pid)  # a kernel without these lists
    return below[0] if below else pid


def seen_from_here(own: int, below: int) -> int:
    """Of the process below this one that calls itself `own`."""
    return _named(own, ((pid, f"/proc/{pid}") for pid in process.descendants(below)))


def death_seen_from_here(death: Death, below: int) -> Death:
    """With the numbers of its process and threads."""
    pid = seen_from_here(death.pid, below)
    threads = [int(each.name) for each in _entries(Path(f"/proc/{pid}/task"))]
    faults = [
        fault._replace(thread=_named(fault.thread, ((tid, f"/proc/{pid}/task/{tid}") for tid in threads)))
        for fault in death.faults
    ]
    throws = [
        throw._replace(thread=_named(throw.thread, ((tid, f"/proc/{pid}/task/{tid}") for tid in threads)))
        for throw in death.throws
    ]
    return death._replace(pid=pid, faults=tuple(faults), throws=tuple(throws))


def _named(own: int, candidates: Iterable[tuple[int, str]]) -> int:
    for number, folder in candidates:
        if read_fields(f"{folder}/status", ":").get("NSpid", "").split()[-1:] == [str(own)]:
            return number
    return own


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []
