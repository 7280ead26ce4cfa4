"""Does what was measured in windows of equal length grow from one to the next?"""

from __future__ import annotations

NOISE = 4 << 10  # bytes that TensorFlow itself may keep of a window
LEAST_PER_CALL = 8.0


def is_growth(grown: list[int], calls: int, counted: bool, least: float = LEAST_PER_CALL) -> bool:
    """Memory that doubles when it is full grows in few windows, but by much; most leaks grow in all of them."""
    total = sum(grown)
    if counted:
        return total >= calls and min(grown) > 0
    enough = total > max(least * calls * len(grown), NOISE * len(grown))
    return enough and sum(each > NOISE for each in grown) >= 2 and min(grown) > -NOISE
