"""How sizes of memory and files are said in words."""

from __future__ import annotations

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_words(size: int) -> str:
    """ "64 MiB", "1.5 GiB"."""
    power = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    value = size / (1 << (10 * power))
    return f"{value:.1f} {_UNITS[power]}" if value % 1 and value < 100 else f"{value:.0f} {_UNITS[power]}"
