"""The memory of a program over time, as a row of bars: against its limit, with epochs or steps, and with saves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from faultlens.records.crash import Crash
from faultlens.report.page import QUIET, fixed, words
from faultlens.report.progress import landmarks, saves
from faultlens.report.sparkline import sparkline, ticks
from faultlens.report.timeline_chart import is_in_sight, limit_of
from faultlens.text.quantities import duration
from faultlens.text.sizes import in_words as size

_SAVE = "▲"
_ASKED = "!"


def rows(crash: Crash, width: int) -> list[Text]:
    known = [(sample.seconds, sample.rss_anonymous) for sample in crash.timeline if sample.rss_anonymous is not None]
    samples = sorted((at, value) for at, value in known if math.isfinite(at))
    if len(samples) < 2:
        return []
    axis = _Axis(samples[0][0], samples[-1][0], min(width, len(samples)))
    values = [value for _, value in samples]
    limit, kind = limit_of(crash)
    near = limit is not None and is_in_sight(limit, max(values))
    bars = sparkline(_by_time(samples, axis), axis.columns, int(limit) if near and limit else 0)
    noun, found = landmarks(crash)
    places = {axis.column(mark.start): mark.number for mark in found if axis.has(mark.start)}
    below = [ticks(list(places.items()), axis.columns), _signs(crash, axis)]
    told = [f"over {duration(axis.end - axis.start)}: from {size(values[0])} to {size(values[-1])}"]
    told += [f"at most {size(max(values))}"]
    told += [f"█ is the {kind}, {size(int(limit))}"] if near and limit else []
    told += [f"│ {noun}s"] if below[0] else []
    told += [f"{_SAVE} saves"] if _SAVE in below[1] else []
    told += [f"{_ASKED} asked to end"] if _ASKED in below[1] else []
    return [
        fixed(words(bars)),
        *(fixed(Text(row, QUIET)) for row in below if row),
        words(f"anonymous memory {', '.join(told)}", QUIET),
    ]


class _Axis(NamedTuple):
    """Time, from left to right."""

    start: float
    end: float
    columns: int

    def has(self, when: float) -> bool:
        return self.start <= when <= self.end

    def column(self, when: float) -> int:
        share = (when - self.start) / max(self.end - self.start, 1e-9)
        return min(int(share * self.columns), self.columns - 1)


def _by_time(samples: Sequence[tuple[float, int]], axis: _Axis) -> list[int]:
    """The highest value of each column; samples are taken more seldom later on, so what is missing stays as it was."""
    highest: list[int | None] = [None] * axis.columns
    for when, value in samples:
        column = axis.column(when)
        highest[column] = max(highest[column] or 0, value)
    shown: list[int] = []
    for known in highest:
        shown.append(known if known is not None else shown[-1])
    return shown


def _signs(crash: Crash, axis: _Axis) -> str:
    row = [" "] * axis.columns
    for save in saves(crash.progress):
        if axis.has(save.start):
            row[axis.column(save.start)] = _SAVE
    if crash.stop_request and axis.has(crash.stop_request.seconds):
        row[axis.column(crash.stop_request.seconds)] = _ASKED
    return "".join(row).rstrip()
