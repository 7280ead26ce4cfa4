"""Code that has no file because it was typed in: `python -c`, `python -`, a program on standard input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from faultlens.records.crash import Frame, Thread

TYPED_IN = ("<string>", "<stdin>")  # also the names of code that libraries made up
_WORKER = re.compile(r"/multiprocessing/(?:spawn|forkserver|resource_tracker)\.py$")  # started with `-c`


def mark_typed_in(threads: Sequence[Thread]) -> tuple[Thread, ...]:
    """Where a stack begins with such code, it is the program itself; elsewhere it was made up on the way."""
    programs = {file for thread in threads if (file := _program(thread.frames))}
    if not programs:
        return tuple(threads)
    return tuple(replace(thread, frames=_marked(thread.frames, programs)) for thread in threads)


def _program(frames: Sequence[Frame]) -> str | None:
    python = [frame for frame in frames if frame.kind == "python"]
    if not python or python[-1].file not in TYPED_IN or python[-1].function != "<module>":
        return None
    return None if any(_WORKER.search(frame.file or "") for frame in python[-2:-1]) else python[-1].file


def _marked(frames: Iterable[Frame], programs: Iterable[str]) -> tuple[Frame, ...]:
    return tuple(
        replace(frame, typed_in=True) if frame.kind == "python" and frame.file in programs else frame
        for frame in frames
    )
