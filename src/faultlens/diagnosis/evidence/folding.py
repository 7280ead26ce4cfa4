"""How a long stack is made short: runs of library frames, and recursion, are told in one line each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faultlens.inspection.frames import is_kernel, is_nameless, is_own, package_of
from faultlens.inspection.own_program import TYPED_IN
from faultlens.records.crash import Frame

# Layers that pass a call on: what the user called lies further in.
_PASSES_ON = re.compile(r"/(?:tensorflow/python/(?:eager/|util/)|keras/(?:src/)?utils/traceback_utils)")

_SMALLEST_FOLD = 3  # two frames take hardly more room than the line that says they are folded
_NAMES_SHOWN = 3
_ROUNDS = 3  # twice may be chance
_LONGEST_ROUND = 64  # frames: a recursion through Keras' layers takes some 20 for each
_ROWS, _OUTER_ROWS = 40, 12  # of a stack; recursion in no fixed order has no rounds


class Fold(NamedTuple):
    """Frames that are shown as one line: a run in libraries, or further rounds of a recursion."""

    frames: int
    packages: tuple[str, ...] = ()
    round: int = 0  # of a recursion: how many frames, those just before the fold, come again and again


class _Recursion(NamedTuple):
    start: int
    round: int
    end: int


def fold(frames: Sequence[Frame], innermost: int = 3) -> list[Frame | Fold]:
    """The frames for display: long runs of library frames folded but for a few innermost ones, and recursion."""
    rows: list[Frame | Fold] = []
    run: list[Frame] = []
    called = _called_by_user(frames)
    shown = {
        index
        for index, frame in enumerate(frames)
        if index < innermost or index in called or is_own(frame) or is_kernel(frame) or frame.file in TYPED_IN
    }
    place = 0
    for found in (*_recursions(frames), _Recursion(len(frames), 0, len(frames))):
        again = found.start + found.round
        for index in range(place, again):
            if index in shown:
                rows += [*_folded(run), frames[index]]
                run = []
            else:
                run.append(frames[index])
        if shown.isdisjoint(range(found.start, again)):  # libraries among themselves
            run += frames[again : found.end]
        else:
            rows += [*_folded(run), Fold(found.end - again, round=found.round)]
            run = []
        place = found.end
    return _shortened(rows + _folded(run))


def fold_recursion(frames: Sequence[Frame]) -> Iterator[Frame | Fold]:
    """All frames, but of a recursion the innermost round alone."""
    place = 0
    for found in _recursions(frames):
        again = found.start + found.round
        yield from frames[place:again]
        yield Fold(found.end - again, round=found.round)
        place = found.end
    yield from frames[place:]


def fold_in_words(fold: Fold) -> str:
    if fold.round:
        times = f"{fold.frames // fold.round:,} times more"
        return f"… this call {times}" if fold.round == 1 else f"… these {fold.round} calls {times}"
    names = ", ".join(fold.packages[:_NAMES_SHOWN])
    return f"… {fold.frames:,} frames in {names}" + (", …" if len(fold.packages) > _NAMES_SHOWN else "")


def _recursions(frames: Sequence[Frame]) -> Iterator[_Recursion]:
    """Where the same functions call each other round after round, whatever line of them is at work."""
    functions = [_function(frame) for frame in frames]
    often = {function for function, times in Counter(functions).items() if times >= _ROUNDS}
    place = 0
    while place < len(functions):
        lengths = range(1, _LONGEST_ROUND + 1) if functions[place] in often else ()
        found = max((_rounds(functions, place, length) for length in lengths), key=_hidden, default=None)
        if found and _hidden(found) >= max(_SMALLEST_FOLD, (_ROUNDS - 1) * found.round):
            yield found
            place = found.end
        else:
            place += 1


def _hidden(found: _Recursion) -> int:
    return found.end - found.start - found.round


def _function(frame: Frame) -> tuple[object, ...]:
    if frame.kind == "python":
        return frame.kind, frame.function, frame.file
    return frame.kind, frame.library, frame.offset if is_nameless(frame) else frame.function


def _rounds(functions: Sequence[object], start: int, length: int) -> _Recursion:
    """The whole rounds of this length that begin there."""
    end = start + length
    while end < len(functions) and functions[end] == functions[end - length]:
        end += 1
    return _Recursion(start, length, end - (end - start) % length)


def _shortened(rows: list[Frame | Fold]) -> list[Frame | Fold]:
    """The inner and the outer end of a stack whose recursion has no rounds."""
    if len(rows) <= _ROWS:
        return rows
    middle = rows[_ROWS - _OUTER_ROWS : -_OUTER_ROWS]
    packages: dict[str, None] = {}
    for row in middle:
        packages |= dict.fromkeys(row.packages if isinstance(row, Fold) else (package_of(row),))
    hidden = Fold(sum(row.frames if isinstance(row, Fold) else 1 for row in middle), tuple(packages))
    return [*rows[: _ROWS - _OUTER_ROWS], hidden, *rows[-_OUTER_ROWS:]]


def _called_by_user(frames: Sequence[Frame]) -> set[int]:
    """Where the functions of libraries are that lines of the user's call."""
    called = set()
    for index, frame in enumerate(frames):
        inner = index - 1
        while is_own(frame) and inner >= 0 and _PASSES_ON.search(frames[inner].file or ""):
            inner -= 1
        if is_own(frame) and inner >= 0 and frames[inner].kind == "python":
            called.add(inner)
    return called


def _folded(run: list[Frame]) -> list[Frame | Fold]:
    if len(run) < _SMALLEST_FOLD:
        return [*run]
    return [Fold(len(run), tuple(dict.fromkeys(package_of(frame) for frame in run)))]
