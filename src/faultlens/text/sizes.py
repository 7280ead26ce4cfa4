"""How sizes of memory and files are said in words, and read from them."""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?) ?(?:(?P<unit>[KMGTP])(?P<binary>i?)(?P<b>B?)|B|bytes)?", re.I)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_words(size: int) -> str:
    """ "64 MiB", "1.5 GiB"."""
    power = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    value = size / (1 << (10 * power))
    return f"{value:.1f} {_UNITS[power]}" if value % 1 and value < 100 else f"{value:.0f} {_UNITS[power]}"


def from_words(text: str) -> int | None:
    """ "8GiB", "1.5 G", "7000MB", "4096"; only with a B and without an i are units decimal. None: it is no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = " KMGTP".index((match["unit"] or " ").upper())
    base = 1000 if match["b"] and not match["binary"] else 1024
    return int(float(match["number"]) * base**power)
