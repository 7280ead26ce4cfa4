"""What the tables and headers of a JPEG say. Most files of an encoder have the same, so that they are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from faultlens.data.images.huffman import Coded, Table, impossible_zeros

BLOCK = 8  # pixels on a side


class Component(NamedTuple):
    across: int
    down: int
    quantisation: int


class Components(NamedTuple):
    by_number: dict[int, Component]
    across: int  # the most of any
    down: int


class Selection(NamedTuple):
    """The components of a scan."""

    numbers: bytes
    chosen: tuple[Component, ...]
    tables: tuple[int, ...]  # of each: the number of the one for DC, then of the one for AC
    quantisations: frozenset[int]
    blocks: tuple[int, ...]  # of each in an MCU
    across: int  # the most of any component of the image
    down: int
    progression: bytes  # first and last coefficient, bits

    def mcus(self, width: int, height: int, side: int = BLOCK) -> int:
        if len(self.chosen) > 1:
            return -(-width // (side * self.across)) * -(-height // (side * self.down))
        (only,) = self.chosen  # which has no blocks beyond its own edge
        wide, high = -(-width * only.across // self.across), -(-height * only.down // self.down)
        return -(-wide // side) * -(-high // side)


class Demands(NamedTuple):
    """What the data of a scan must be like."""

    bits: int  # that an MCU has at least
    zeros: int  # bytes in a row that cannot be; 0: any number can


@lru_cache(64)
def quantisations(segment: bytes) -> frozenset[int] | None:
    """The numbers of the tables in it. None: damaged."""
    found, at = set(), 0
    while at < len(segment):
        precision, number = divmod(segment[at], 16)
        at += 1 + 64 * (1 + precision)
        if precision > 1 or number > 3 or at > len(segment):
            return None
        found.add(number)
    return frozenset(found)


@lru_cache(64)
def components(raw: bytes) -> Components | None:
    """Three bytes for each. None: impossible."""
    found = {raw[at]: Component(raw[at + 1] >> 4, raw[at + 1] & 15, raw[at + 2]) for at in range(0, len(raw) - 2, 3)}
    if not 1 <= len(found) <= 4 or len(raw) != 3 * len(found):
        return None
    if not all(1 <= each.across <= 4 and 1 <= each.down <= 4 for each in found.values()):
        return None
    return Components(found, max(each.across for each in found.values()), max(each.down for each in found.values()))


@lru_cache(64)
def selection(raw: bytes, scan: bytes) -> Selection | None:
    """Of a scan by its header. None: damaged."""
    known, count = components(raw), scan[0] if scan else 0
    if known is None or not 1 <= count <= 4 or len(scan) != 4 + 2 * count:
        return None
    numbers = scan[1:-3:2]
    if len(set(numbers)) != count or not known.by_number.keys() >= set(numbers):
        return None
    chosen = [known.by_number[number] for number in numbers]
    return Selection(
        numbers,
        tuple(chosen),
        tuple(scan[2:-3:2]),
        frozenset(each.quantisation for each in chosen),
        tuple(each.across * each.down if count > 1 else 1 for each in chosen),
        known.across,
        known.down,
        scan[-3:],
    )


@lru_cache(64)
def demands(blocks: tuple[int, ...], tables: tuple[tuple[Table, Table], ...]) -> Demands:
    coded = tuple(Coded(count, dc, ac) for count, (dc, ac) in zip(blocks, tables, strict=True))
    bits = sum(each.blocks * (each.dc.shortest + each.ac.shortest) for each in coded)
    return Demands(bits, impossible_zeros(coded))
