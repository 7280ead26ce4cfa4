"""How many processes stand below one, and how much memory do they take? Asked ten times a second, so cheaply."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from faultlens.inspection import process
from faultlens.system.machine import kilobytes
from faultlens.system.procfs import read_fields, resident

MANY = 1000  # more are not counted


class Family(NamedTuple):
    processes: tuple[int, ...]
    resident: int  # bytes; what several have in common counts for each


def below(root: int) -> Family:
    """Those that have ended and wait for their parents count no more."""
    sizes = {pid: size for pid in _descendants(root) if (size := resident(pid))}
    return Family(tuple(sizes), sum(sizes.values()))


def shared_out(family: Family) -> int:
    """Bytes that they take together: what several have in common, as after a fork, counts once. Takes milliseconds."""
    if len(family.processes) < 2:
        return family.resident
    return sum(map(_proportional, family.processes))


def _descendants(root: int) -> list[int]:
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):  # a kernel without these lists
        return process.descendants(root)
    found: list[int] = []
    waiting = [root]
    while waiting and len(found) < MANY:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _proportional(pid: int) -> int:
    size = read_fields(f"/proc/{pid}/smaps_rollup", ":").get("Pss")
    return (kilobytes(size) or 0) if size else resident(pid)
