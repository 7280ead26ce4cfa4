"""Does something grow without end? The rule over the timeline, and what follows from it.

Looked at are the last two thirds of the steps that the program made (what comes before is warm-up: functions are
traced, pools and buffers fill), and, for what began late, the last third. The span is cut into six windows of as many
steps each; of every window the lowest value counts, so that garbage, saves and evaluations, which come and go, do not.
It grows if

- the lowest value rose from every window to the next, none of the five rises being less than a third or more than
  three times the usual one: steps up that happen once are no leaks;
- the last two rises are at least 0.7 of the first two: what slows down (pools, fragments) comes to an end;
- it rose by more than a healthy program was seen to (LEAST), in all and with every step;
- the span has 45 steps and three seconds at least.

Where no steps are known there is no telling work from preparation, so the span must have 30 seconds. A growth that is
found so is only suspected; it is told when it goes on after that (supervise/leaks.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from faultlens.records.crash import GrowthKind, Sample
from faultlens.text.sizes import KIB, MIB

WINDOWS = 6
LEAST_STEPS = 45
LEAST_SECONDS = 3.0
LEAST_SECONDS_WITHOUT_STEPS = 30.0
SLOWING = 0.7
STEADY = 3.0  # no rise is so many times smaller, or larger, than the usual one

# In all, and with every step.
LEAST: dict[GrowthKind, tuple[int, float]] = {
    "memory": (16 * MIB, 8 * KIB),
    "shared memory": (4 * MIB, 4 * KIB),
    "GPU memory": (64 * MIB, 64 * KIB),
    "open files": (24, 0.02),
    "threads": (24, 0.02),
}
_VALUES: dict[GrowthKind, Callable[[Sample], int | None]] = {
    "memory": lambda sample: sample.rss_anonymous,
    "shared memory": lambda sample: _larger(sample.rss_shared, sample.shm_used),
    "GPU memory": lambda sample: sample.gpu_used,
    "open files": lambda sample: sample.open_files,
    "threads": lambda sample: sample.threads,
}


class Point(NamedTuple):
    at: float  # steps made, or seconds
    value: int
    sample: Sample


class Trend(NamedTuple):
    """A steady rise, seen from `first` to `last`."""

    what: GrowthKind
    first: Point
    last: Point
    slope: float  # for each step, or each second
    by_steps: bool

    @property
    def seconds(self) -> float:
        return self.last.sample.seconds - self.first.sample.seconds

    @property
    def steps(self) -> int | None:
        return int(self.last.at - self.first.at) if self.by_steps else None

    @property
    def per_step(self) -> float | None:
        return self.slope if self.by_steps else None

    @property
    def per_second(self) -> float:
        return self.slope * (self.last.at - self.first.at) / self.seconds if self.by_steps else self.slope


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """Everything that grows, as far as the samples tell."""
    found = [_trend(what, samples) for what in _VALUES]
    return [trend for trend in found if trend is not None]


def value_of(what: GrowthKind, sample: Sample) -> int | None:
    return _VALUES[what](sample)


def _trend(what: GrowthKind, samples: Sequence[Sample]) -> Trend | None:
    by_steps = bool(samples) and samples[-1].steps is not None
    points = [
        Point(float(sample.steps or 0) if by_steps else sample.seconds, value, sample)
        for sample in samples
        if (value := _VALUES[what](sample)) is not None and (sample.steps or not by_steps)
    ]
    for part in (1 / 3, 2 / 3):
        if points:
            start = points[0].at + (points[-1].at - points[0].at) * part
            trend = _steady(what, [point for point in points if point.at >= start], by_steps)
            if trend is not None:
                return trend
    return None


def _steady(what: GrowthKind, points: Sequence[Point], by_steps: bool) -> Trend | None:
    if len(points) < WINDOWS:
        return None
    width = points[-1].at - points[0].at
    seconds = points[-1].sample.seconds - points[0].sample.seconds
    if (width < LEAST_STEPS or seconds < LEAST_SECONDS) if by_steps else seconds < LEAST_SECONDS_WITHOUT_STEPS:
        return None
    lowest = [min(window, key=lambda point: point.value) for window in _windows(points, width) if window]
    rises = [later.value - earlier.value for earlier, later in pairwise(lowest)]
    usual = median(rises) if len(rises) == WINDOWS - 1 else 0
    if usual <= 0 or min(rises) * STEADY < usual or max(rises) > usual * STEADY:
        return None
    if sum(rises[-2:]) < SLOWING * sum(rises[:2]):
        return None
    in_all, per_step = LEAST[what]
    slope = _slope(lowest)
    if sum(rises) < in_all or (by_steps and slope < per_step):
        return None
    return Trend(what, lowest[0], lowest[-1], slope, by_steps)


def _windows(points: Sequence[Point], width: float) -> list[list[Point]]:
    windows: list[list[Point]] = [[] for _ in range(WINDOWS)]
    for point in points:
        windows[min(int((point.at - points[0].at) / width * WINDOWS), WINDOWS - 1)].append(point)
    return windows


def _slope(points: Sequence[Point]) -> float:
    """The median of the slopes between all pairs (Theil and Sen): one odd window does not matter."""
    return median(
        (later.value - earlier.value) / (later.at - earlier.at)
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
        if later.at > earlier.at
    )


def _larger(one: int | None, other: int | None) -> int | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None
