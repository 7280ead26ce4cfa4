"""How threads and their frames are shown as text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath

from rich.text import Text

from faultlens.crash import Crash, Frame, Thread
from faultlens.report.frames import (
    Fold,
    fold,
    fold_in_words,
    is_kernel,
    is_main,
    is_own,
    main_thread,
    short_function,
    without_dying,
)
from faultlens.report.headline import native_place, place, short_path
from faultlens.report.page import GAP, OWN, QUIET, fixed, unbroken, words
from faultlens.report.quantities import count
from faultlens.report.safe_text import ELLIPSIS, one_line, shorten

_GROUPS_SHOWN = 6
_INDENT = "  "
_IN_PACKAGES = re.compile(r"^.*/(?:site-packages|dist-packages|lib(?:64)?/python[\d.]+t?)/")


def shown_threads(crash: Crash) -> list[Thread]:
    """Those whose stacks matter: the crashed one and the one that launched the work, else the main one."""
    chosen = [thread for thread in (crash.crashed_thread, crash.launching_thread) if thread]
    if not chosen:
        chosen = [thread for thread in (main_thread(crash),) if thread] or list(crash.threads[:1])
    return list({thread.id: thread for thread in chosen}.values())


def stack(thread: Thread, crash: Crash, width: int, *, folded: bool = True) -> list[Text]:
    """A title, then one row for each frame or fold, innermost first."""
    frames = without_dying(thread.frames) if folded else thread.frames
    rows = fold(frames) if folded else list(frames)
    functions = [_function(row) for row in rows if isinstance(row, Frame)]
    room = min(max(map(len, functions), default=0), max(width * 45 // 100, 20))
    title = words(thread_in_words(thread, crash))
    if not frames:
        return [title, words(f"{_INDENT}no frames could be read", QUIET)]
    return [title, *(_row(row, crash, room, width) for row in rows)]


def thread_in_words(thread: Thread, crash: Crash) -> str:
    """ "thread 'tf_Compute' (4243), which crashed"."""
    name = thread.python_name or thread.name
    if is_main(thread, crash):
        words = "main thread"
    else:
        words = f"thread '{name}' ({thread.id})" if name else f"thread {thread.id}"
    if thread.crashed:
        words += ", which crashed"
    if thread.launched and not thread.crashed:
        words += ", which launched the work"
    if thread.collecting_garbage:
        words += ", collecting garbage"
    return words + (", holds the GIL" if thread.holds_gil else "")


def other_threads(crash: Crash) -> list[Text]:
    """The threads whose stacks are not shown, alike ones together, one row each."""
    shown = {thread.id for thread in shown_threads(crash)}
    others = [thread for thread in crash.threads if thread.id not in shown]
    groups = Counter((_kind_of_name(thread), _standing(thread, crash)) for thread in others)
    room = min(max((len(name) for name, _ in groups), default=0), 24)
    rows = []
    for (name, standing), number in groups.most_common(_GROUPS_SHOWN):
        times = words(f"{number} × " if number > 1 else "", QUIET)
        times.pad_left(5 - len(times))
        rows.append(fixed(times, words(name.ljust(room + GAP)), words(standing, QUIET)))
    rest = len(others) - sum(number for _, number in groups.most_common(_GROUPS_SHOWN))
    return [*rows, words(f"{ELLIPSIS} and {count(rest, 'more thread')}", QUIET)] if rest else rows


def _kind_of_name(thread: Thread) -> str:
    """Names of pool threads without their numbers: "tf_Compute", "Thread"."""
    name = one_line(thread.python_name or thread.name or f"{thread.id}", 40)
    return re.sub(r"[-_/ ]?\d+$", "", name) or name


def _standing(thread: Thread, crash: Crash) -> str:
    own = next((frame for frame in thread.frames if frame.kind == "python" and is_own(frame)), None)
    if own:
        return place(own, crash)
    frame = next(iter(thread.frames), None)
    if frame is None:
        return ""
    return native_place(frame) if frame.kind == "native" else f"{_place(frame, crash)} ({frame.function})"


def _row(row: Frame | Fold, crash: Crash, room: int, width: int) -> Text:
    if isinstance(row, Fold):
        return fixed(words(_INDENT + fold_in_words(row), QUIET))
    own = is_own(row)
    style = OWN if own or is_kernel(row) else QUIET
    name = words(_INDENT + shorten(_function(row), room).ljust(room + GAP), style)
    where = _place(row, crash)
    if own:  # never cut: people open it
        return unbroken(name, words(where, OWN))
    left = max(width - len(_INDENT) - room - GAP, 12)
    return fixed(name, words(where if len(where) <= left else ELLIPSIS + where[1 - left :], QUIET))


def _function(frame: Frame) -> str:
    if frame.kind == "python":
        return one_line(frame.function, 120)
    return "?" if frame.approximate or not frame.function else one_line(short_function(frame.function), 120)


def _place(frame: Frame, crash: Crash) -> str:
    if frame.kind == "native":
        return _native(frame, crash)
    path = frame.file or "?"
    shown = short_path(path, crash) if is_own(frame) else one_line(_IN_PACKAGES.sub("", path), 200)
    return f"{shown}:{frame.line}" if frame.line is not None else shown


def _native(frame: Frame, crash: Crash) -> str:
    if frame.file and frame.line is not None and is_own(frame):
        return f"{short_path(frame.file, crash)}:{frame.line}"
    if not frame.library:
        return repr(frame.address) if frame.address is not None else "unknown code"
    name = one_line(PurePosixPath(frame.library).name, 120)
    exact = frame.function and not frame.approximate
    return name if exact or frame.offset is None else f"{name}+{frame.offset!r}"
