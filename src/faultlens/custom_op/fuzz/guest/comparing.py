"""Are two results the same? Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

from typing import Any

import numpy as np

# Relative to the largest value: sums in another order differ by as much.
TOLERANCES = {
    "float16": 2e-2,
    "bfloat16": 1e-1,
    "float32": 1e-3,
    "complex64": 1e-3,
    "float64": 1e-6,
    "complex128": 1e-6,
}


def same_bits(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(map(_same_bits, left, right))


def _same_bits(left: Any, right: Any) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(left.tolist() == right.tolist() if left.dtype == object else left.tobytes() == right.tobytes())


def difference(left: list[Any], right: list[Any]) -> str | None:
    """Where two results are not alike within what another order of sums explains, in words."""
    if len(left) != len(right):
        return f"{len(left)} outputs, and {len(right)}"
    for number, (one, other) in enumerate(zip(left, right)):
        if words := _difference(np.asarray(one), np.asarray(other)):
            return f"output {number}: {words}"
    return None


def _difference(one: Any, other: Any) -> str | None:
    if one.shape != other.shape:
        return f"its shape is {list(one.shape)}, and {list(other.shape)}"
    if not one.size or _same_bits(one, other):
        return None
    if one.dtype == object or other.dtype == object or (one.dtype.kind in "iub" and other.dtype.kind in "iub"):
        wrong = one != other
    else:
        tolerance = max(TOLERANCES.get(each.dtype.name, 0.0) for each in (one, other))
        wrong = _far(one.astype(np.complex128), other.astype(np.complex128), tolerance)
    if not np.any(wrong):
        return None
    place = tuple(int(each) for each in np.argwhere(np.atleast_1d(wrong))[0])
    pair = np.atleast_1d(one)[place], np.atleast_1d(other)[place]
    return f"{int(np.sum(wrong))} of {one.size} values differ, at {list(place)}: {pair[0]!s:.40}, and {pair[1]!s:.40}"


def _far(one: Any, other: Any, tolerance: float) -> Any:
    with np.errstate(all="ignore"):
        sizes = np.abs(np.where(np.isfinite(one), one, 0))
        close = np.abs(one - other) <= tolerance * (np.max(sizes, initial=0.0) + np.abs(one)) + 1e-12
        return ~(close | (one == other) | (np.isnan(one) & np.isnan(other)))
