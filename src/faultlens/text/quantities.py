"""How durations, moments and counts are said in words; sizes: `sizes.py`."""

from __future__ import annotations

import time


def duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _two(minutes, "min", rest, "s")
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return _two(hours, "h", minutes, "min")
    days, hours = divmod(hours, 24)
    return _two(days, "d", hours, "h")


def moment(seconds: float | None) -> str:
    """A time since 1970 as the clock on the wall shows it; nothing for one that no clock shows."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds is not None else ""
    except (OverflowError, ValueError, OSError):
        return ""


def count(number: int, noun: str) -> str:
    """ "1 thread", "1,024 threads"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
