"""The user's own source files that a crash points to: what is kept of them, so that a report stands on its own."""

from __future__ import annotations

import ast
import io
import os
import stat
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame, Thread
from faultlens.supervise.source_folders import SourceFolders

MAX_FILES = 16
MAX_BYTES = 200_000


class Source(NamedTuple):
    text: str
    digest: str  # SHA-256 of the file


def with_sources(crash: Crash, folders: SourceFolders | None = None) -> Crash:
    """With the lines around frames and those that rules look at; with whole files where nothing is redacted.

    `folders`: where those that a core names may be read; see SourceFolders."""
    if crash.outcome.kind == "ok" and not crash.fault and not crash.hunt:
        return crash  # there is nothing to explain
    found = own_sources(crash, folders)
    crash = replace(crash, gaps=(*crash.gaps, *_not_read(crash, found)))
    whole = replace(
        crash,
        sources={path: source.text for path, source in found.items()},
        source_digests={path: source.digest for path, source in found.items()},
    )
    if not crash.program.redacted:
        return whole
    # Imported only now: until something dies, the supervisor stays small.
    from faultlens.diagnosis.evidence.telling_lines import telling_lines
    from faultlens.supervise.condensed import around, condensed

    near = {path: around(frame.line for frame in _frames(crash) if frame.file == path and frame.line) for path in found}
    telling = telling_lines(whole)
    kept = {path: condensed(text, near[path], telling[path]) for path, text in whole.sources.items()}
    return replace(whole, sources={path: text for path, text in kept.items() if text.strip()})


def without_sources(crash: Crash) -> Crash:
    """Without any line of the program; the digests still tell which files it was."""
    return replace(crash, sources={}, children=tuple(map(without_sources, crash.children)))


def own_sources(crash: Crash, folders: SourceFolders | None = None) -> dict[str, Source]:
    """By the path as the frames have it. Files that changed since the program started are left out.

    Modules of the user's own that these files import come along: what frees a buffer is often not on the stack."""
    folder = Path(crash.program.directory or ".")
    on_stacks = list(_named(crash))
    waiting = list(dict.fromkeys(on_stacks or _scripts(crash)))
    roots = {(folder / path).parent for path in waiting}
    found: dict[str, Source] = {}
    while waiting and len(found) < MAX_FILES:
        path = waiting.pop(0)
        source = _source(crash, path, folders) if path not in found else None
        if source is not None:
            found[path] = source
            waiting += _imported(source.text, roots | {(folder / path).parent})
    return found


def own_source(crash: Crash, path: str, folders: SourceFolders | None = None) -> str | None:
    """The text of a file that has not changed since the program started."""
    source = _source(crash, path, folders)
    return source.text if source else None


def _source(crash: Crash, path: str, folders: SourceFolders | None) -> Source | None:
    started = (crash.time or 0.0) - (crash.seconds or 0.0)
    place = Path(crash.program.directory or ".") / path
    try:
        if place.stat().st_mtime > started:
            return None
        if crash.method == "core":
            data = (folders or SourceFolders.of_core()).read(place, MAX_BYTES)
        else:
            data = _read(place)
        return Source(decoded(data), _digest(data)) if data is not None else None
    except (OSError, SyntaxError, ValueError):
        return None


def _not_read(crash: Crash, found: Iterable[str]) -> Iterator[str]:
    """Why a report of a core has no lines of the program."""
    if crash.method == "core" and not list(found):
        folder = Path(crash.program.directory or ".")
        named = (folder / file for file in _named(crash))
        if missing := next((path for path in named if os.path.isfile(path)), None):
            yield (
                f"{missing} was not read: a core may name any file, so only those below the current folder are; "
                "--source-root names another"
            )


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


def _named(crash: Crash) -> Iterator[str]:
    return (frame.file for frame in _frames(crash) if frame.file and is_own(frame) and not frame.own)


def _scripts(crash: Crash) -> Iterable[str]:
    """The program itself, where no stack was seen: killed without a word."""
    return (word for word in crash.program.command[1:] if word.endswith(".py"))


def _frames(crash: Crash) -> Iterable[Frame]:
    for kernel in crash.kernels:
        yield from (frame for frame in (kernel.written, kernel.layer_made) if frame)
    threads: list[Thread | None] = [crash.launching_thread, crash.crashed_thread, *crash.threads]
    for thread in threads:
        yield from (frame for frame in (thread.frames if thread else ()) if frame.kind == "python")
    if exception := python_exception(crash):
        yield from exception.frames
    yield from crash.last_lines.frames if crash.last_lines else ()


def _read(path: Path) -> bytes | None:
    state = path.stat()
    return path.read_bytes() if stat.S_ISREG(state.st_mode) and state.st_size <= MAX_BYTES else None


def _digest(data: bytes) -> str:
    import hashlib  # with OpenSSL, which the supervisor need not load until something dies

    return hashlib.sha256(data).hexdigest()


def decoded(data: bytes) -> str:
    """As Python reads it; raises SyntaxError or ValueError."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()
