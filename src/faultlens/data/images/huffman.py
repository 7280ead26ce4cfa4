"""What the Huffman tables of a JPEG say about its data without decoding them: how short they can be, and how even."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

END_OF_BLOCK = 0
COEFFICIENTS = 63  # of a block, beside the first
DC_RANGE = 1 << 13  # more than the first coefficients of 8 bit images can differ by
MIN_ZEROS = 64
_SHARES = tuple(1 << 16 - bits for bits in range(1, 17))


class Table(NamedTuple):
    shortest: int  # bits of its shortest code, which is all zeros
    symbol: int  # what that stands for


class Coded(NamedTuple):
    """A component of a scan."""

    blocks: int  # in one MCU
    dc: Table
    ac: Table


def tables(segment: bytes) -> dict[int, Table] | None:
    """By class and number: 0x11 is the second table for AC coefficients. None: damaged."""
    found: dict[int, Table] = {}
    position = 0
    while position < len(segment):
        head, counts = segment[position], segment[position + 1 : position + 17]
        total = sum(counts)
        symbols = segment[position + 17 : position + 17 + total]
        if len(counts) < 16 or len(symbols) < total or total > 256 or head & 0xEC or not _fits(counts):
            return None
        shortest = 1 + len(counts) - len(counts.lstrip(b"\0"))
        found[head] = Table(shortest, symbols[0] if symbols else END_OF_BLOCK)
        position += 17 + total
    return found


def _fits(counts: bytes) -> bool:
    """Whether there are as many codes of each length: one of 3 bits takes the place of 8192 of 16."""
    taken: int = sum(map(mul, counts, _SHARES))
    return taken <= 1 << 16


def impossible_zeros(coded: Sequence[Coded]) -> int:
    """How many zero bytes in a row no encoder writes with these tables; 0 where an even area may look like that.

    Zeros are the shortest codes again and again. Where that is not "no change, and nothing more in this block", they
    make the same wild pattern in every block, or one that grows brighter beyond what there is."""
    bits, wild, drift = 0, False, 0
    for blocks, dc, ac in coded:
        of_ac = ac.shortest
        if ac.symbol != END_OF_BLOCK:
            run, size = divmod(ac.symbol, 16)
            of_ac = -(-COEFFICIENTS // (run + 1)) * (ac.shortest + size)
            wild = True
        bits += blocks * (dc.shortest + dc.symbol + of_ac)
        drift = max(drift, blocks * ((1 << dc.symbol) - 1))
    if not wild and not drift:
        return 0
    mcus = 3 if wild else DC_RANGE // drift + 3
    return max(MIN_ZEROS, bits * mcus // 8 + 1)
