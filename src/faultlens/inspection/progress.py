"""How far the program had come: read from the page on which code inside it left its marks."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.guest import layout
from faultlens.records.crash import Progress, ProgressMark

CLOCK_SLACK_S = 1.0


class Loop(NamedTuple):
    """Where the program is at the moment; 0 stands for unknown. Epochs and steps are counted from 1."""

    phase: str
    epoch: int
    epochs: int
    steps: int  # of the epoch
    step: int
    made: int  # steps of all loops since the start


def read_progress(page: bytes, started: float, ended: float) -> Progress | None:
    """`started` and `ended` of the program, in seconds since 1970. What does not fit in between was never written,
    or is damaged. None: there is no mark at all."""
    if len(page) < layout.PAGE_BYTES:
        return None
    phase, epoch, epochs, steps, step, time_ns, _ = layout.STATE.unpack_from(page, layout.STATE_AT)
    marks = tuple(_marks(page, started, ended))
    time = time_ns / 1e9
    if not _within(time, started, ended) or phase >= len(layout.PHASES):
        return Progress(marks=marks) if marks else None
    if not (phase or step or marks):
        return None  # it has only traced functions
    return Progress(
        phase=layout.PHASES[phase] or None,
        epoch=_positive(epoch),
        epochs=_positive(epochs),
        step=_positive(step),
        steps=_positive(steps),
        seconds_before=round(max(ended - time, 0.0), 3),
        detail=_text(*layout.DETAIL.unpack_from(page, layout.DETAIL_AT)) or None,
        marks=marks,
    )


def read_loop(page: bytes) -> Loop | None:
    """None where the program has no loop that is known, or has not come to it."""
    if len(page) < layout.PAGE_BYTES:
        return None
    phase, epoch, epochs, steps, step, _, made = layout.STATE.unpack_from(page, layout.STATE_AT)
    if made <= 0 or phase >= len(layout.PHASES):
        return None
    return Loop(layout.PHASES[phase], epoch, epochs, steps, step, made)


def _marks(page: bytes, started: float, ended: float) -> list[ProgressMark]:
    (count,) = layout.COUNT.unpack_from(page, layout.COUNT_AT)
    found = []
    for number in range(max(count - layout.MARKS, 0), count):
        at = layout.MARKS_AT + number % layout.MARKS * layout.MARK.size
        time_ns, kind, length, text = layout.MARK.unpack_from(page, at)
        time = time_ns / 1e9
        if 0 < kind < len(layout.KINDS) and _within(time, started, ended):
            seconds = round(max(time - started, 0.0), 3)
            found.append(ProgressMark(seconds=seconds, kind=layout.KINDS[kind], text=_text(length, text)))
    return sorted(found, key=lambda mark: mark.seconds)


def _within(time: float, started: float, ended: float) -> bool:
    return started - CLOCK_SLACK_S <= time <= ended + CLOCK_SLACK_S


def _positive(number: int) -> int | None:
    return number if number > 0 else None


def _text(length: int, text: bytes) -> str:
    return text[:length].decode("utf-8", "backslashreplace")
