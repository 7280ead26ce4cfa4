"""From measured runs to a forecast: pure functions over peaks by batch size and step.

Two things raise the peak. The batch: roughly in proportion, so the largest runs count. And the number of steps: the
first ones do not show all, because threads take turns and the allocator keeps what each of them has once needed. That
creep hardly depends on the batch: runs with small batches, which can afford many steps, tell it for the large ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.text.sizes import MIB

HORIZON = 30  # steps for which the peak is foreseen; the upper bound reaches further
LONG = 200
# How far off the estimate was on the models it was made with (docs/forecast.md): a share of what training added.
MEASURED_SHARE, MEASURED_FLOOR = 0.10, 48 * MIB
REACH_SHARE = 0.2  # for each doubling beyond the largest run
MOST_REACH = 0.6
VISIBLE = 16 * MIB  # peaks of runs do not differ by so much without a reason


class Series(NamedTuple):
    """One run: the peak after each of its steps."""

    batch: int
    peaks: tuple[int, ...]

    def after(self, steps: int) -> int:
        return self.peaks[min(max(steps, 1), len(self.peaks)) - 1]


class Estimate(NamedTuple):
    peak: int
    low: int
    high: int
    per_example: float  # bytes that one more example in the batch takes
    measured: bool  # this very batch size was run


def estimate(series: Sequence[Series], batch: int, base: int, known: int = 0) -> Estimate:
    """`base` is what the process holds before the first step: no batch takes less. `known`: bytes of one example and
    of what layers make of it, for runs that do not show how they grow."""
    runs = sorted(series)
    largest = runs[-1]
    slope = float(known) if hides_growth(runs, base, known) else _slope(runs, base)
    own = next((run for run in runs if run.batch == batch), None)
    near = own or min(runs, key=lambda run: abs(math.log(run.batch / batch)))
    steps = len(near.peaks)
    creep, doubling = _creep(runs, steps)
    peak = max(round(near.after(steps) + slope * (batch - near.batch) + creep), base)
    reach = max(math.log2(batch / largest.batch), 0.0)
    share = MEASURED_SHARE + (REACH_SHARE * reach if own is None else 0.0)
    doubt = max(round((peak - base) * min(share, MOST_REACH)), MEASURED_FLOOR)
    further = round(doubling * math.log2(LONG / HORIZON))
    return Estimate(peak, max(peak - doubt - round(creep), base), peak + doubt + further, slope, own is not None)


def hides_growth(series: Sequence[Series], base: int, known: int) -> bool:
    """Where batches are small, or the process has taken as much before, and kept it."""
    runs = sorted(series)
    slope, span = _slope(runs, base), runs[-1].batch - (runs[0].batch if len(runs) > 1 else 0)
    return slope < known and slope * span < VISIBLE


def largest_batch(series: Sequence[Series], base: int, limit: int, most: int, known: int = 0) -> int | None:
    """The largest whose upper bound is within the limit; None where not even one example is."""

    def fits(batch: int) -> bool:
        return estimate(series, batch, base, known).high <= limit

    if not fits(1):
        return None
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _slope(runs: Sequence[Series], base: int) -> float:
    """Bytes for each example: the line that fits the runs best, after as many steps in each."""
    steps = min(len(run.peaks) for run in runs)
    batches, peaks = [run.batch for run in runs], [run.after(steps) for run in runs]
    if len(runs) == 1:
        return max(runs[0].after(HORIZON) - base, 0) / batches[0]
    middle, level = sum(batches) / len(runs), sum(peaks) / len(runs)
    rise = sum((batch - middle) * (peak - level) for batch, peak in zip(batches, peaks, strict=True))
    return max(rise / sum((batch - middle) ** 2 for batch in batches), 0.0)


def _creep(runs: Sequence[Series], steps: int) -> tuple[float, float]:
    """How much the peak still rises from `steps` to the horizon, and with each doubling of the steps after that."""
    longest = max(runs, key=lambda run: len(run.peaks))
    count = len(longest.peaks)
    rise = longest.after(count) - longest.after(steps) if count > steps else 0
    early = max(count // 4, 1)
    doubling = (longest.after(count) - longest.after(early)) / math.log2(count / early) if count > early else 0.0
    missing = max(math.log2(HORIZON / max(count, steps)), 0.0)
    return rise + doubling * missing, doubling
