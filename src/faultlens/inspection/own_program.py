"""Code of the user's own that its file does not tell: what was typed in (`python -c`, `python -`, standard input),
and the executable of a program without Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from faultlens.inspection import symbols
from faultlens.records.crash import Frame, Mapping, Thread
from faultlens.target_env.packages import LIBPYTHON

TYPED_IN = ("<string>", "<stdin>")  # also the names of code that libraries made up
_WORKER = re.compile(r"/multiprocessing/(?:spawn|forkserver|resource_tracker)\.py$")  # started with `-c`
_SYSTEM_PROGRAM = re.compile(r"^/(?:usr/)?(?:s?bin|lib(?:exec|32|64|x32)?)/")

IsOwn = Callable[[Frame], bool]


def own_program(threads: Iterable[Thread], executable: str | None, mappings: Sequence[Mapping]) -> IsOwn:
    """Tells which frames are the program's own."""
    typed = {file for thread in threads if (file := _typed_in(thread.frames))}
    program = executable if executable and _is_own_executable(executable, mappings) else None

    def is_own(frame: Frame) -> bool:
        if frame.kind == "python":
            return frame.file in typed
        return program is not None and frame.library == program

    return is_own


def marked(frames: Iterable[Frame], is_own: IsOwn) -> tuple[Frame, ...]:
    return tuple(replace(frame, own=True) if is_own(frame) else frame for frame in frames)


def _typed_in(frames: Sequence[Frame]) -> str | None:
    """Where a stack begins with such code, it is the program itself; elsewhere it was made up on the way."""
    python = [frame for frame in frames if frame.kind == "python"]
    if not python or python[-1].file not in TYPED_IN or python[-1].function != "<module>":
        return None
    return None if any(_WORKER.search(frame.file or "") for frame in python[-2:-1]) else python[-1].file


def _is_own_executable(path: str, mappings: Sequence[Mapping]) -> bool:
    if _SYSTEM_PROGRAM.search(path) or any(LIBPYTHON.search(mapping.path or "") for mapping in mappings):
        return False
    return symbols.value_of(path, "_PyRuntime") is None  # has Python built in
