"""The user's own source files that a crash points to, kept with it: a report must stand on its own."""

from __future__ import annotations

import ast
import stat
import tokenize
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from faultlens.clues.frames import is_own
from faultlens.clues.last_words import python_exception
from faultlens.crash import Crash, Frame, Thread

MAX_FILES = 16
MAX_BYTES = 200_000


def with_sources(crash: Crash) -> Crash:
    return replace(crash, sources=own_sources(crash))


def own_sources(crash: Crash) -> dict[str, str]:
    """Path as the frames have it -> text. Files that changed since the program started are left out.

    Modules of the user's own that these files import come along: what frees a buffer is often not on the stack."""
    folder = Path(crash.program.directory or ".")
    on_stacks = [frame.file for frame in _frames(crash) if frame.file and is_own(frame)]
    waiting = list(dict.fromkeys(on_stacks or _scripts(crash)))
    roots = {(folder / path).parent for path in waiting}
    found: dict[str, str] = {}
    while waiting and len(found) < MAX_FILES:
        path = waiting.pop(0)
        text = own_source(crash, path) if path not in found else None
        if text is not None:
            found[path] = text
            waiting += _imported(text, roots | {(folder / path).parent})
    return found


def own_source(crash: Crash, path: str) -> str | None:
    """The text of a file that has not changed since the program started."""
    started = (crash.time or 0.0) - (crash.seconds or 0.0)
    return _read(Path(crash.program.directory or ".") / path, started)


def _imported(text: str, roots: Iterable[Path]) -> list[str]:
    """The files of imported modules, as far as they lie beside the program."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names)]
    places = [root / f"{name.replace('.', '/')}.py" for name in names if name for root in roots]
    return [str(place) for place in dict.fromkeys(places) if place.is_file()]


def _scripts(crash: Crash) -> Iterable[str]:
    """The program itself, where no stack was seen: killed without a word."""
    return (word for word in crash.program.command[1:] if word.endswith(".py"))


def _frames(crash: Crash) -> Iterable[Frame]:
    for kernel in crash.kernels:
        yield from (frame for frame in (kernel.written, kernel.layer_made) if frame)
    threads: list[Thread | None] = [crash.launching_thread, crash.crashed_thread, *crash.threads]
    for thread in threads:
        yield from (frame for frame in (thread.frames if thread else ()) if frame.kind == "python")
    for kernel in crash.kernels:
        yield from (frame for frame in (kernel.written, kernel.layer_made) if frame)
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
