"""Which files some process has open for writing, as far as we may see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from faultlens.data.aggregate.merge import File
from faultlens.data.source import is_remote
from faultlens.records.scan import Flaw, Place
from faultlens.text.file_names import to_name
from faultlens.text.safe import one_line

WRITING = os.O_WRONLY | os.O_RDWR


def writers() -> dict[tuple[int, int], str]:
    """Device and inode of each file, and who writes to it: "process 12 (python)"."""
    found: dict[tuple[int, int], str] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                for descriptor in (process / "fd").iterdir():
                    _look(process, descriptor, found)
            except OSError:
                continue  # not ours to see, or gone
    return found


def _look(process: Path, descriptor: Path, found: dict[tuple[int, int], str]) -> None:
    try:
        if not os.readlink(descriptor).startswith("/") or os.readlink(descriptor).startswith(("/dev/", "/proc/")):
            return
        if not _is_writing((process / "fdinfo" / descriptor.name).read_text()):
            return
        state = os.stat(descriptor)
        name = os.fsdecode((process / "comm").read_bytes()).strip()
    except OSError:
        return
    found[state.st_dev, state.st_ino] = f"process {process.name} ({one_line(name)})"


def _is_writing(facts: str) -> bool:
    flags = next((line.split()[1] for line in facts.splitlines() if line.startswith("flags:")), "0")
    return bool(int(flags, 8) & WRITING)


def written(files: Mapping[str, File], who: Mapping[tuple[int, int], str]) -> list[Flaw]:
    if not who:
        return []
    inodes = {inode for _, inode in who}
    flaws = []
    for path, file in files.items():
        if is_remote(path) or file.identity.inode not in inodes:
            continue
        try:
            state = os.stat(to_name(path))
        except OSError:
            continue
        if writer := who.get((state.st_dev, state.st_ino)):
            reason = f"{writer} has it open for writing: what was read need not be what will be there"
            flaws.append(Flaw(kind="written", severity="warning", place=Place(path=path), reason=reason))
    return flaws
