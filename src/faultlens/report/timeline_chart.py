"""The memory timeline as a drawing: a curve, the limit, epochs, saves, the moment of death; in units of the drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from faultlens.records.crash import Crash
from faultlens.report.progress import landmarks, saves
from faultlens.text.quantities import duration
from faultlens.text.sizes import in_words as size

WIDTH, HEIGHT = 1000, 240
_MOST_POINTS = 250
_HEADROOM = 1.12
# A limit further above the curve than this would press it to the ground; it is told in words then.
_LIMIT_IN_SIGHT = 4
_LARGEST = float(1 << 60)
_MOST_EPOCHS, _MOST_SAVES = 40, 40
_NARROWEST_SPAN = 3
# Room for a label, as a share of a drawing on a phone: there must be no overlap even there.
_LETTER, _LABEL_GAP = 0.022, 0.015


class Mark(NamedTuple):
    """A line across the drawing with its label."""

    at: str  # percent from the top
    y: str  # the same in units of the drawing
    label: str


class Tick(NamedTuple):
    """A line from top to bottom; its label stands below, where there is room."""

    at: str  # percent from the left
    x: str
    label: str


class Band(NamedTuple):
    """A shaded part of the drawing."""

    x: str
    width: str
    title: str


class Chart(NamedTuple):
    curve: str  # of an SVG path
    area: str  # the same, closed at the bottom
    span: str
    limit: Mark | None
    course: str  # in words, for those who do not see the drawing
    far_limit: str | None  # a limit that is out of sight
    died: bool
    epochs: tuple[Tick, ...]  # or steps
    saves: tuple[Band, ...]
    asked: str | None  # x, where it was asked to end


def chart(crash: Crash) -> Chart | None:
    points = _points(crash)
    if len(points) < 2:
        return None
    end = points[-1][0]
    if crash.seconds is not None and end < crash.seconds < _LARGEST:
        end = crash.seconds
        if crash.fault and crash.memory and crash.memory.rss_anonymous is not None:  # measured at the fault itself
            points.append((end, _bounded(crash.memory.rss_anonymous)))
    highest = max(value for _, value in points)
    limit, kind = limit_of(crash)
    seen = is_in_sight(limit, highest)
    top = max(highest, limit if seen and limit else 0, 1) * _HEADROOM
    start = points[0][0]
    span = max(end - start, 1e-6)
    places = [(WIDTH * (when - start) / span, HEIGHT * (1 - value / top)) for when, value in _thinned(points)]
    curve = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    told = f"{kind} {size(int(limit))}" if limit is not None else ""
    return Chart(
        curve=curve,
        area=f"{curve}L{places[-1][0]:.1f} {HEIGHT}L{places[0][0]:.1f} {HEIGHT}Z",
        span=duration(span),
        limit=_mark(1 - limit / top, told) if seen and limit is not None else None,
        course=f"anonymous memory over {duration(span)}: from {size(int(points[0][1]))}"
        f" to {size(int(points[-1][1]))}, at most {size(int(highest))}",
        far_limit=told if limit is not None and not seen else None,
        died=crash.outcome.kind == "signal" or crash.was_running or crash.fault is not None,
        epochs=_epochs(crash, start, span),
        saves=_saves(crash, start, span),
        asked=_asked(crash, start, span),
    )


def _mark(share: float, label: str) -> Mark:
    return Mark(f"{100 * share:.1f}%", f"{HEIGHT * share:.1f}", label)


def _epochs(crash: Crash, start: float, span: float) -> tuple[Tick, ...]:
    noun, found = landmarks(crash)
    begun = [((epoch.start - start) / span, epoch.number) for epoch in found]
    seen = sorted((share, number) for share, number in begun if 0 <= share <= 1)
    ticks: list[Tick] = []
    free = 0.0  # where the last label ended
    for share, number in seen[:: math.ceil(len(seen) / _MOST_EPOCHS) or 1]:
        text = f"{noun} {number}" if free == 0 else number
        end = share + _LETTER * len(text)
        label = text if number and free <= share and end <= 1 else ""
        free = end + _LABEL_GAP if label else free
        ticks.append(Tick(f"{100 * share:.1f}%", f"{WIDTH * share:.1f}", label))
    return tuple(ticks)


def _saves(crash: Crash, start: float, span: float) -> tuple[Band, ...]:
    bands = []
    for save in saves(crash.progress)[-_MOST_SAVES:]:
        begin, end = (save.start - start) / span, ((save.end - start) / span if save.end is not None else 1.0)
        left, right = max(begin, 0.0) * WIDTH, min(end, 1.0) * WIDTH
        if begin <= 1 and end >= 0 and right >= left:
            width = max(right - left, _NARROWEST_SPAN)
            bands.append(Band(f"{min(left, WIDTH - width):.1f}", f"{width:.1f}", f"saving {save.text}".rstrip()))
    return tuple(bands)


def _asked(crash: Crash, start: float, span: float) -> str | None:
    share = (crash.stop_request.seconds - start) / span if crash.stop_request else -1.0
    return f"{WIDTH * share:.1f}" if 0 <= share <= 1 else None


def _points(crash: Crash) -> list[tuple[float, float]]:
    """(seconds, bytes), in order of time; a damaged report may hold anything."""
    found = [
        (sample.seconds, _bounded(sample.rss_anonymous))
        for sample in crash.timeline
        if sample.rss_anonymous is not None and math.isfinite(sample.seconds) and abs(sample.seconds) < _LARGEST
    ]
    return sorted(found)


def _bounded(size: int) -> float:
    return float(min(max(size, 0), _LARGEST))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The highest of each few neighbours, and both ends."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    edges = [index * len(points) // _MOST_POINTS for index in range(_MOST_POINTS + 1)]
    peaks = [max(points[start:end], key=lambda point: point[1]) for start, end in pairwise(edges)]
    return [points[0], *peaks, points[-1]]


def is_in_sight(limit: float | None, highest: float) -> bool:
    return limit is not None and 0 < limit <= highest * _LIMIT_IN_SIGHT


def limit_of(crash: Crash) -> tuple[float | None, str]:
    """The tightest that applies, and what it is."""
    allowed = [
        (crash.cgroup.memory_limit if crash.cgroup else None, "limit of the cgroup"),
        (crash.machine.memory_total if crash.machine else None, "memory of the machine"),
    ]
    known = [(float(min(value, 1 << 60)), kind) for value, kind in allowed if value is not None and value > 0]
    return min(known) if known else (None, "")
