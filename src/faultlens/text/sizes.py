"""How sizes of memory and files are said in words, and read from them."""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_ABSURD = 1 << 80  # no machine has so much; a damaged report may say so
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?) ?(?:(?P<unit>[KMGTP])(?P<binary>i?)(?P<b>B?)|B|bytes)?", re.I)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_words(size: int) -> str:
    """ "64 MiB", "1.5 GiB": three digits at most, rounded, in the unit that the rounded number belongs to."""
    value = float(min(max(size, -_ABSURD), _ABSURD))
    unit = 0
    while abs(value) >= 1023.5 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 0 if unit == 0 or abs(value) >= 99.95 else 1
    return f"{value:.{digits}f}".removesuffix(".0") + " " + _UNITS[unit]


def from_words(text: str) -> int | None:
    """ "8GiB", "1.5 G", "7000MB", "4096"; only with a B and without an i are units decimal. None: it is no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = " KMGTP".index((match["unit"] or " ").upper())
    base = 1000 if match["b"] and not match["binary"] else 1024
    return int(float(match["number"]) * base**power)
