"""What the tables and headers of a JPEG say. Most files of an encoder have the same, so that the answers are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from faultlens.data.images import huffman
from faultlens.data.images.huffman import Coded, Table

DHT, BASELINE, PROGRESSIVE = 0xC4, 0xC0, 0xC2
LOSSLESS = frozenset({0xC3, 0xC7, 0xCB, 0xCF})  # coded by pixels, not by blocks
BLOCK = 8  # pixels on a side
MAX_SIDE = 65500  # of libjpeg


class Damaged(Exception):  # noqa: N818 (no error of the program)
    pass


class Tables:
    """Those that stand before a scan. They are kept apart by what they are, not by what is in them."""

    def __init__(self, huffman_tables: dict[int, Table], quantisations: frozenset[int]) -> None:
        self.huffman = huffman_tables
        self.quantisations = quantisations


NO_TABLES = Tables({}, frozenset())


class Frame(NamedTuple):
    code: int
    precision: int
    width: int
    height: int
    components: bytes  # three for each

    @property
    def channels(self) -> int:
        return len(self.components) // 3


class Component(NamedTuple):
    across: int
    down: int
    quantisation: int


class Plan(NamedTuple):
    """What the data of a scan must be like."""

    numbers: bytes  # of its components
    single: Component | None  # if there is one only
    across: int  # the most of any component of the image
    down: int
    side: int  # pixels of a unit
    bits: int  # that an MCU has at least; 0: unknown
    zeros: int  # bytes in a row that cannot be; 0: any number can

    def mcus(self, frame: Frame) -> int:
        if self.single is None:
            return -(-frame.width // (self.side * self.across)) * -(-frame.height // (self.side * self.down))
        # It has no blocks beyond its own edge.
        wide = -(-frame.width * self.single.across // self.across)
        high = -(-frame.height * self.single.down // self.down)
        return -(-wide // self.side) * -(-high // self.side)


@lru_cache(64)
def extended(tables: Tables, code: int, segment: bytes) -> Tables:
    if code == DHT:
        if (found := huffman.tables(segment)) is None:
            raise Damaged("a Huffman table is damaged")
        return Tables({**tables.huffman, **found}, tables.quantisations)
    return Tables(tables.huffman, tables.quantisations | _quantisations(segment))


def _quantisations(segment: bytes) -> set[int]:
    """The numbers of the tables in it."""
    found, at = set(), 0
    while at < len(segment):
        precision, number = divmod(segment[at], 16)
        at += 1 + 64 * (1 + precision)
        if precision > 1 or number > 3 or at > len(segment):
            raise Damaged("a quantisation table is damaged")
        found.add(number)
    return found


@lru_cache(64)
def frame(code: int, segment: bytes) -> Frame:
    if len(segment) < 6 or len(segment) != 6 + 3 * segment[5]:
        raise Damaged("the segment with its sizes is damaged")
    precision, height, width = segment[0], segment[1] << 8 | segment[2], segment[3] << 8 | segment[4]
    if not 0 < width <= MAX_SIDE or not 0 < height <= MAX_SIDE:
        raise Damaged(f"its size of {width} × {height} is none that decoders take")
    if precision != 8 and precision not in ((12,) if BASELINE < code <= PROGRESSIVE else range(2, 17)):
        raise Damaged(f"it cannot have {precision} bits per sample")
    components = _components(segment[6:])
    if not 1 <= len(components) <= 4 or len(components) != segment[5]:
        raise Damaged("its components are impossible")
    if not all(1 <= each.across <= 4 and 1 <= each.down <= 4 for each in components.values()):
        raise Damaged("its components are impossible")
    return Frame(code, precision, width, height, segment[6:])


def _components(raw: bytes) -> dict[int, Component]:
    return {raw[at]: Component(raw[at + 1] >> 4, raw[at + 1] & 15, raw[at + 2]) for at in range(0, len(raw), 3)}


@lru_cache(64)
def plan(tables: Tables, code: int, precision: int, components: bytes, scan: bytes) -> Plan:
    """By the header of a scan."""
    known, count = _components(components), scan[0] if scan else 0
    numbers = scan[1:-3:2]
    if not 1 <= count <= 4 or len(scan) != 4 + 2 * count or len(set(numbers) & known.keys()) != count:
        raise Damaged("the header of a scan is damaged")
    chosen = [known[number] for number in numbers]
    if code not in LOSSLESS and not tables.quantisations.issuperset(each.quantisation for each in chosen):
        raise Damaged("a quantisation table is missing")
    bits, zeros = 0, 0
    if coded := _coded(tables, code, precision, chosen, scan):
        bits = sum(each.blocks * (each.dc.shortest + each.ac.shortest) for each in coded)
        zeros = huffman.impossible_zeros(coded)
    across, down = (max(each[way] for each in known.values()) for way in (0, 1))
    side = 1 if code in LOSSLESS else BLOCK
    return Plan(numbers, chosen[0] if count == 1 else None, across, down, side, bits, zeros)


def _coded(tables: Tables, code: int, precision: int, chosen: list[Component], scan: bytes) -> list[Coded]:
    """None where the data are not simply Huffman codes from beginning to end."""
    progressive = code == PROGRESSIVE
    if code > PROGRESSIVE or precision != 8 or not (tables.huffman or progressive):
        return []  # no tables: a frame of a film, with those of the standard
    first, _, bits = scan[-3:]
    needs_dc, needs_ac = (first == 0 and bits < 16, first > 0) if progressive else (True, True)
    coded = []
    for component, numbers in zip(chosen, scan[2:-3:2], strict=True):
        dc, ac = tables.huffman.get(numbers >> 4), tables.huffman.get(0x10 | numbers & 15)
        if (needs_dc and dc is None) or (needs_ac and ac is None):
            raise Damaged("a Huffman table is missing")
        if dc and ac and not progressive:
            coded.append(Coded(component.across * component.down if len(chosen) > 1 else 1, dc, ac))
    return coded
