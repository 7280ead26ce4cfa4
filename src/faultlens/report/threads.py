"""How threads and their frames are shown as text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath

from rich.text import Text

from faultlens.diagnosis.evidence.folding import Fold, fold, fold_in_words, fold_recursion
from faultlens.inspection.frames import (
    is_kernel,
    is_main,
    is_nameless,
    is_own,
    main_thread,
    short_function,
    without_dying,
)
from faultlens.records.crash import Crash, Frame, Thread
from faultlens.report.headline import native_place, short_path
from faultlens.report.page import GAP, OWN, PATH_LIMIT, QUIET, fixed, unbroken, words
from faultlens.text.quantities import count
from faultlens.text.safe import ELLIPSIS, one_line, shorten

_GROUPS_SHOWN = 6
_WHOLE = 200  # rows of a stack
_LONGEST_NAME = 26
_USUAL_FUNCTION = 36
_INDENT = "  "
_NO_FRAMES = words(f"{_INDENT}no frames could be read", QUIET)
_EXTENSION_TAG = re.compile(r"\.cpython-[^.]+(?=\.so)")
_IN_PACKAGES = re.compile(r"^.*/(?:site-packages|dist-packages|lib(?:64)?/python[\d.]+t?)/")


def shown_threads(crash: Crash) -> list[Thread]:
    """Those whose stacks matter: the crashed one and the one that launched the work, else the main one."""
    chosen = [thread for thread in (crash.crashed_thread, crash.launching_thread) if thread]
    if not chosen:
        chosen = [thread for thread in (main_thread(crash),) if thread] or list(crash.threads[:1])
    return list({thread.id: thread for thread in chosen}.values())


def stack(thread: Thread, crash: Crash, width: int) -> list[Text]:
    """A title, then one row for each frame or fold, innermost first."""
    title = words(thread_in_words(thread, crash))
    if not thread.frames:
        return [title, _NO_FRAMES]
    # Where the launching thread waits for the crashed one is of no interest.
    innermost = 1 if thread.launched and not thread.crashed else 3
    rows = fold(without_dying(thread.frames), innermost)
    frames = [row for row in rows if isinstance(row, Frame)]
    longest_place = max(len(frame_place(frame, crash)) for frame in frames)
    left = max(width - len(_INDENT) - GAP - longest_place, width * 4 // 10)
    room = min(max(len(function_name(frame)) for frame in frames), left)
    return [title, *(_row(row, crash, room, width) for row in rows)]


def whole_stack(thread: Thread, crash: Crash) -> list[Text]:
    """Every frame, with the whole path or the offset in its library; of a recursion one round."""
    title = words(thread_in_words(thread, crash))
    if not thread.frames:
        return [title, _NO_FRAMES]
    rows = [_whole_row(row) for row in fold_recursion(thread.frames)]
    hidden = len(rows) - _WHOLE
    if hidden > 0:
        rows[_WHOLE // 2 : -_WHOLE // 2] = [words(f"{_INDENT}{ELLIPSIS} {count(hidden, 'more line')}", QUIET)]
    return [title, *rows]


def _whole_row(row: Frame | Fold) -> Text:
    if isinstance(row, Fold):
        return words(_INDENT + fold_in_words(row), QUIET)
    place = f"{row.file or '?'}:{row.line}" if row.kind == "python" else _offset(row)
    style = OWN if is_own(row) or is_kernel(row) else ""
    name = words(_INDENT + function_name(row).ljust(_USUAL_FUNCTION) + " " * GAP, style)
    return unbroken(name, words(place, QUIET, PATH_LIMIT))


def thread_in_words(thread: Thread, crash: Crash) -> str:
    """ "thread 4243 'tf_Compute' (crashed)"."""
    name = thread.python_name or thread.name
    number = f"thread {thread.id} '{name}'" if name else f"thread {thread.id}"
    title = "main thread" if is_main(thread, crash) else number
    marks = {
        "crashed": thread.crashed,
        "launched the work": thread.launched and not thread.crashed,
        "collecting garbage": thread.collecting_garbage,
        "holds the GIL": thread.holds_gil,
    }
    told = ", ".join(mark for mark, holds in marks.items() if holds)
    return f"{title} ({told})" if told else title


def other_threads(crash: Crash) -> list[Text]:
    """The threads whose stacks are not shown, alike ones together, one row each."""
    shown = {thread.id for thread in shown_threads(crash)}
    others = [thread for thread in crash.threads if thread.id not in shown]
    groups = Counter((kind_of_name(thread), _standing(thread, crash)) for thread in others)
    room = min(max((len(name) for name, _ in groups), default=0), _LONGEST_NAME)
    rows = []
    most = max(groups.values(), default=1)
    digits = len(str(most)) if most > 1 else 0
    for (name, standing), number in groups.most_common(_GROUPS_SHOWN):
        times = Text(f"{number:>{digits}} × " if number > 1 else " " * (digits and digits + 3), QUIET)
        rows.append(fixed(times, words(shorten(name, room).ljust(room + GAP)), words(standing, QUIET)))
    rest = len(others) - sum(number for _, number in groups.most_common(_GROUPS_SHOWN))
    return [*rows, words(f"{ELLIPSIS} and {count(rest, 'more thread')}", QUIET)] if rest else rows


def kind_of_name(thread: Thread) -> str:
    """Names of pool threads without their numbers: "tf_Compute", "Thread"."""
    name = one_line(thread.python_name or thread.name or f"{thread.id}", 40)
    return re.sub(r"[-_/ ]?\d+$", "", name) or name


def _standing(thread: Thread, crash: Crash) -> str:
    """Its innermost line of the user's own code, else of Python code, else the native function it is in."""
    python = [frame for frame in thread.frames if frame.kind == "python"]
    frame = next(filter(is_own, python), None) or next(iter((*python, *thread.frames)), None)
    if frame is None:
        return ""
    return native_place(frame) if frame.kind == "native" else f"{frame_place(frame, crash)} ({frame.function})"


def _row(row: Frame | Fold, crash: Crash, room: int, width: int) -> Text:
    if isinstance(row, Fold):
        return fixed(words(_INDENT + fold_in_words(row), QUIET))
    own = is_own(row)
    style = OWN if own or is_kernel(row) else QUIET
    name = words(_INDENT + _fitting(function_name(row), room).ljust(room + GAP), style)
    where = frame_place(row, crash)
    if own:  # never cut: people open it
        return unbroken(name, words(where, OWN))
    left = max(width - len(_INDENT) - room - GAP, 12)
    return fixed(name, words(where if len(where) <= left else ELLIPSIS + where[1 - left :], QUIET))


def function_name(frame: Frame) -> str:
    if frame.kind == "python":
        return one_line(frame.function, 120)
    return "?" if frame.approximate or is_nameless(frame) else one_line(short_function(frame.function), 120)


def _fitting(function: str, room: int) -> str:
    """The last parts of a qualified name say most."""
    if len(function) <= room:
        return function
    parts = function.split("::")
    while len(parts) > 1 and len("::".join(parts)) >= room:
        parts = parts[1:]
    short = "::".join(parts)
    return shorten(function if short == function else ELLIPSIS + short, room)


def frame_place(frame: Frame, crash: Crash) -> str:
    if frame.kind == "native":
        return _native(frame, crash)
    path = frame.file or "?"
    shown = short_path(path, crash) if is_own(frame) else one_line(_in_package(path), 200)
    return f"{shown}:{frame.line}" if frame.line is not None else shown


def _in_package(path: str) -> str:
    """ "tensorflow/…/script_ops.py": the package and the file."""
    parts = _IN_PACKAGES.sub("", path).split("/")
    return "/".join(parts if len(parts) <= 3 else [parts[0], ELLIPSIS, parts[-1]])


def _offset(frame: Frame) -> str:
    if not frame.library:
        return repr(frame.address) if frame.address is not None else "unknown code"
    return frame.library if frame.offset is None else f"{frame.library}+{frame.offset!r}"


def _native(frame: Frame, crash: Crash) -> str:
    if frame.file and frame.line is not None and is_own(frame):
        return f"{short_path(frame.file, crash)}:{frame.line}"
    if not frame.library:
        return _offset(frame)
    name = one_line(_EXTENSION_TAG.sub("", PurePosixPath(frame.library).name), 120)
    exact = not (is_nameless(frame) or frame.approximate)
    return name if exact or frame.offset is None else f"{name}+{frame.offset!r}"
