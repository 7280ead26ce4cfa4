"""The threads on the page: one stack each, folded, and one for all that stand at the same place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from faultlens.diagnosis.evidence.folding import Fold, fold, fold_in_words, fold_recursion
from faultlens.inspection.frames import is_kernel, is_own, without_dying
from faultlens.records.crash import Crash, Frame, Thread
from faultlens.report.some import Some
from faultlens.report.threads import frame_place, function_name, kind_of_name, shown_threads, thread_in_words
from faultlens.text.quantities import count
from faultlens.text.safe import one_line

_FRAMES, _FRAMES_OF_OTHERS, _GROUPS, _IDS = 150, 40, 40, 12


class Call(NamedTuple):
    function: str
    place: str
    own: bool
    kernel: bool


class Folded(NamedTuple):
    summary: str
    calls: tuple[Call, ...]


class Stack(NamedTuple):
    title: str
    rows: tuple[Call | Folded, ...]
    more: int
    open: bool


def stack(thread: Thread, crash: Crash) -> Stack:
    """Runs of library frames and recursion are folded, as is what only carries out an abort."""
    telling = without_dying(thread.frames)
    dying = thread.frames[: len(thread.frames) - len(telling)]
    aborting = [Folded(f"… {count(len(dying), 'frame')} of aborting", _calls(dying, crash))] if dying else []
    rows = _rows(fold(telling, 1 if thread.launched and not thread.crashed else 3), telling, crash)
    return Stack(_thread_title(thread, crash), (*aborting, *rows), 0, True)


def _rows(rows: Iterable[Frame | Fold], frames: Sequence[Frame], crash: Crash) -> Iterator[Call | Folded]:
    """`rows` are the frames, folded."""
    position = 0
    for row in rows:
        if isinstance(row, Fold):
            run = frames[position : position + min(row.frames, _FRAMES)]
            yield Folded(fold_in_words(row), _calls(run, crash))
            position += row.frames
        else:
            yield _call(row, crash)
            position += 1


def other_stacks(crash: Crash) -> Some[Stack]:
    """Threads that stand at the same place are one item."""
    shown = {thread.id for thread in shown_threads(crash)}
    groups: dict[tuple[object, ...], list[Thread]] = {}
    for thread in crash.threads:
        if thread.id not in shown:
            key = (kind_of_name(thread), *((frame.function, frame.file, frame.line) for frame in thread.frames))
            groups.setdefault(key, []).append(thread)
    alike = sorted(groups.values(), key=len, reverse=True)
    stacks = [_group(threads, crash) for threads in alike[:_GROUPS]]
    return Some(tuple(stacks), sum(len(threads) for threads in alike[_GROUPS:]))


def _group(threads: Sequence[Thread], crash: Crash) -> Stack:
    first = threads[0]
    title = _thread_title(first, crash)
    if len(threads) > 1:
        ids = ", ".join(str(thread.id) for thread in threads[:_IDS])
        title = f"{len(threads)} × {kind_of_name(first)} ({ids}{', …' if len(threads) > _IDS else ''})"
    rows = tuple(_rows(fold_recursion(first.frames), first.frames, crash))
    return Stack(title, rows[:_FRAMES_OF_OTHERS], len(rows) - _FRAMES_OF_OTHERS, False)


def _thread_title(thread: Thread, crash: Crash) -> str:
    return one_line(thread_in_words(thread, crash), 120)


def _calls(frames: Iterable[Frame], crash: Crash) -> tuple[Call, ...]:
    return tuple(_call(frame, crash) for frame in frames)


def _call(frame: Frame, crash: Crash) -> Call:
    return Call(function_name(frame), frame_place(frame, crash), is_own(frame), is_kernel(frame))
