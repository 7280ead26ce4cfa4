"""What a living process holds, seen from outside: memory by kind, open files, threads, files in shared memory.

Costs the process nothing but the moment in which the kernel counts its pages."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.inspection import process
from faultlens.inspection.owners import is_custom
from faultlens.system.procfs import read_text

SHARED_MEMORY = "/dev/shm/"
_HEADER = re.compile(r"^[0-9a-f]+-[0-9a-f]+ (?P<permissions>\S{4}) \S+ \S+ \d+ *(?P<path>.*)$")
_DIGITS = re.compile(r"\d+")
_RANDOM = re.compile(r"(?<=[_.-])[0-9a-f]{6,}|(?<=[_-])[A-Za-z0-9]{8}(?=$|\.)")


class Outside(NamedTuple):
    memory: dict[str, int]  # resident bytes by kind: "heap", "mappings", "files", "shared memory", "stack"
    mappings: int
    reserved: int  # address space of the heap and of anonymous mappings, touched or not
    files: Counter[str]  # open ones, by what they are
    threads: Counter[str]  # by name
    shared: dict[str, int]  # files in /dev/shm that it, or a process below it, has open or mapped: their sizes
    libraries: tuple[str, ...]  # native ones that are neither the system's nor a package's


def look(pid: int) -> Outside:
    memory, reserved, mapped = _mappings(read_text(f"/proc/{pid}/smaps") or "")
    files = list(_open_files(pid))
    shared = {*mapped, *files}
    for child in process.descendants(pid):
        shared.update(_open_files(child))
    libraries = sorted(path for path in set(mapped) if is_custom(path))
    return Outside(
        memory=dict(memory),
        mappings=len(mapped),
        reserved=reserved,
        files=Counter(map(alike, files)),
        threads=Counter(alike(name) for name in _threads(pid)),
        shared={path: _size(path) for path in shared if path.startswith(SHARED_MEMORY)},
        libraries=tuple(libraries),
    )


def alike(name: str) -> str:
    """What is left of a name when its numbers are taken out: the same for files that one line opens."""
    return _DIGITS.sub("#", _RANDOM.sub("#", name))


def _mappings(smaps: str) -> tuple[Counter[str], int, list[str]]:
    memory: Counter[str] = Counter()
    reserved = 0
    paths: list[str] = []
    kind = ""
    for line in smaps.splitlines():
        if match := _HEADER.match(line):
            paths.append(match["path"])
            kind = _kind(match["path"], match["permissions"])
        elif line.startswith("Rss:"):
            memory[kind] += int(line.split()[1]) << 10
        elif line.startswith("Size:") and kind in ("heap", "mappings"):
            reserved += int(line.split()[1]) << 10
    return memory, reserved, paths


def _kind(path: str, permissions: str) -> str:
    if path == "[heap]":
        return "heap"
    if path.startswith("[stack"):
        return "stack"
    if not path or path.startswith("["):
        return "shared memory" if permissions.endswith("s") else "mappings"
    in_memory = path.startswith((SHARED_MEMORY, "/memfd:", "/SYSV", "/dev/zero"))
    return "shared memory" if in_memory else "files"


def _open_files(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(entry.path).removesuffix(" (deleted)")


def _threads(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/task"):
            yield process.thread_name(pid, int(entry.name)) or "?"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_blocks * 512
    except OSError:
        return 0
