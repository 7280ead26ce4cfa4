"""A row of bars that shows how a quantity moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[int], width: int) -> str:
    """One bar for each value, or for the highest of several where there are more values than room."""
    if not values or width < 1:
        return ""
    columns = min(width, len(values))
    edges = [index * len(values) // columns for index in range(columns + 1)]
    heights = [max(values[start:end]) for start, end in pairwise(edges)]
    highest = max(heights) or 1
    return "".join(_BARS[min(height * len(_BARS) // (highest + 1), len(_BARS) - 1)] for height in heights)
