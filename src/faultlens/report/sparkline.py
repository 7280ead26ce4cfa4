"""A row of bars that shows how a quantity moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"
_TICK = "│"
_DENSEST = 3  # columns a tick needs, or the row is a fence


def sparkline(values: Sequence[int], width: int, full: int = 0) -> str:
    """One bar for each value, or for the highest of several where there are more values than room. A bar of full height
    is the highest of all, or `full` if that is more."""
    if not values or width < 1:
        return ""
    columns = min(width, len(values))
    edges = [index * len(values) // columns for index in range(columns + 1)]
    heights = [max(values[start:end]) for start, end in pairwise(edges)]
    highest = max(*heights, full, 1)
    return "".join(_BARS[min(height * len(_BARS) // (highest + 1), len(_BARS) - 1)] for height in heights)


def ticks(places: Sequence[tuple[int, str]], width: int) -> str:
    """A row of ticks to go below the bars, each with its label where there is room; none when they stand too close."""
    if not places or len(places) * _DENSEST > width:
        return ""
    row = [" "] * width
    ordered = sorted(places)
    for (column, label), (following, _) in pairwise([*ordered, (width + 1, "")]):
        row[column] = _TICK
        if column + 1 + len(label) < following:
            row[column + 1 : column + 1 + len(label)] = label
    return "".join(row)
