"""The user's own source files that a crash points to, kept with it: a report must stand on its own."""

from __future__ import annotations

import stat
import tokenize
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from faultlens.clues.frames import is_own
from faultlens.clues.last_words import python_exception
from faultlens.crash import Crash, Frame, Thread

MAX_FILES = 8
MAX_BYTES = 200_000


def with_sources(crash: Crash) -> Crash:
    return replace(crash, sources=own_sources(crash))


def own_sources(crash: Crash) -> dict[str, str]:
    """Path as the frames have it -> text. Files that changed since the program started are left out."""
    started = (crash.time or 0.0) - (crash.seconds or 0.0)
    found: dict[str, str] = {}
    on_stacks = [frame.file for frame in _frames(crash) if frame.file and is_own(frame)]
    for path in dict.fromkeys(on_stacks or _scripts(crash)):
        if len(found) == MAX_FILES:
            break
        text = _read(Path(crash.program.directory or ".", path), started)
        if text is not None:
            found[path] = text
    return found


def _scripts(crash: Crash) -> Iterable[str]:
    """The program itself, where no stack was seen: killed without a word."""
    return (word for word in crash.program.command[1:] if word.endswith(".py"))


def _frames(crash: Crash) -> Iterable[Frame]:
    threads: list[Thread | None] = [crash.launching_thread, crash.crashed_thread, *crash.threads]
    for thread in threads:
        yield from (frame for frame in (thread.frames if thread else ()) if frame.kind == "python")
    if exception := python_exception(crash):
        yield from exception.frames


def _read(path: Path, started: float) -> str | None:
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES or state.st_mtime > started:
            return None
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, ValueError):
        return None
