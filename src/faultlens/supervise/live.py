"""What a program remembered that was not run by faultlens, but called faultlens.install()."""

from __future__ import annotations

import os
import stat
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.fs.state_dir import home
from faultlens.guest.live import FOLDER, NOTES, PROGRESS
from faultlens.guest.notes import LIMIT_BYTES
from faultlens.inspection.graph_lines import with_graph_lines
from faultlens.inspection.progress import CLOCK_SLACK_S, read_progress
from faultlens.records.crash import Crash
from faultlens.supervise.source_folders import SourceFolders
from faultlens.supervise.sources import own_source


class Remembered(NamedTuple):
    notes: bytes
    progress: bytes  # see progress.py
    since: float  # seconds since 1970


def with_remembered(crash: Crash, folders: SourceFolders | None = None) -> Crash:
    """The lines of its graphs and its progress, if the process left any. To be called before with_sources()."""
    remembered = notes_of(crash.pid, crash.time) if crash.pid and crash.time else None
    if remembered is None or crash.time is None:
        return crash
    source = partial(own_source, crash, folders=folders)
    progress = read_progress(remembered.progress, remembered.since, crash.time)
    return with_graph_lines(replace(crash, progress=progress), remembered.notes, source)


def notes_of(pid: int, ended: float) -> Remembered | None:
    """Of the process that had this id when it ended, in seconds since 1970: an id may have been used before."""
    folders = [folder for folder in (home() / FOLDER).glob(f"{pid}-*") if _is_mine(folder)]
    found = [folder for folder in folders if _modified(folder) <= ended + CLOCK_SLACK_S]
    if not found:
        return None
    folder = max(found, key=_modified)
    return Remembered(_read(folder / NOTES, LIMIT_BYTES), _read(folder / PROGRESS, 1 << 16), _modified(folder))


def _is_mine(folder: Path) -> bool:
    """Where others can write, what they left is not taken for the program's."""
    try:
        state = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()


def _read(path: Path, limit: int) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def _modified(folder: Path) -> float:
    """When the folder was made: nothing is created in it later."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return float("inf")
