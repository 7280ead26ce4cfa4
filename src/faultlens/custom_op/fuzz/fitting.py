"""Integers that fit the sizes of other inputs: indices, splits, lengths, boxes. Pure.

Most ops that take integers beside a tensor take them for places in it. Of what they accept, one element is then made
wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

# of n: a size of another input, or an attribute
PATTERNS = (
    "splits",
    "places",
    "lengths",
    "sorted",
    "all of it",
    "last place",
    "falling",
    "previous",
    "spans",
    "behind",
)
MOST_CHANGED = 6  # elements of one tensor


def values(pattern: str, count: int, last: int, n: int) -> tuple[int, ...]:
    """`count` integers; `last`: the length of a row."""
    if pattern == "splits":
        return tuple(k * n // max(count - 1, 1) for k in range(count))
    if pattern == "places":
        return tuple(k % max(n, 1) for k in range(count))
    if pattern == "lengths":
        return tuple(n // count + (k < n % count) for k in range(count))
    if pattern == "sorted":
        return tuple(k * n // count for k in range(count))
    if pattern == "falling":
        return tuple((n - 1 - k) % max(n, 1) for k in range(count))
    if pattern == "previous":
        return tuple(range(-1, count - 1))
    if pattern == "spans":  # rows with a begin and an end, or with two corners
        return tuple(0 if k % last < (last + 1) // 2 else n for k in range(count))
    return ({"all of it": n, "last place": n - 1, "behind": n + 1}[pattern],) * count


def changed(given: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    """One element is wrong, the first and the last ones and some in the middle."""
    count = len(given)
    middle = [count // 2, count // 3] if count > 2 else []
    places = list(dict.fromkeys([*middle, *range(min(count, 3)), *range(max(count - 2, 0), count)]))[:MOST_CHANGED]
    for value in (n, -1, n + 1, 1 << 50, (1 << 31) - 1, 0, n - 1, -(1 << 40)):
        for place in places:
            if given[place] != value:
                yield (*given[:place], value, *given[place + 1 :])
    for one, other in pairwise(places):
        swapped, twice = list(given), list(given)
        swapped[one], swapped[other] = given[other], given[one]
        twice[one] = given[other]
        yield tuple(swapped)
        yield tuple(twice)
    for bits in (32, 64):
        top = (1 << (bits - 1)) - 1  # with two of them the sum starts again
        if count > 2:
            yield (top, top, sum(given) + 2, *(0,) * (count - 3))
            yield (*(0,) * (count - 3), sum(given) + 2, top, top)
