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
    channels: int
    components: bytes  # three for each


class Component(NamedTuple):
    across: int
    down: int
    quantisation: int


class Scan(NamedTuple):
    """The components that the header of a scan names, and how they are coded."""

    numbers: bytes
    single: Component | None  # if there is one only
    across: int  # the most of any component of the image
    down: int
    side: int  # pixels of a unit
    blocks: tuple[int, ...]  # of each component in an MCU
    quantisations: frozenset[int]
    tables: tuple[tuple[int, int], ...]  # of each component: for DC, for AC
    needed: frozenset[int]  # of those tables

    def mcus(self, frame: Frame) -> int:
        if self.single is None:
            return -(-frame.width // (self.side * self.across)) * -(-frame.height // (self.side * self.down))
        # It has no blocks beyond its own edge.
        wide = -(-frame.width * self.single.across // self.across)
        high = -(-frame.height * self.single.down // self.down)
        return -(-wide // self.side) * -(-high // self.side)


class Demands(NamedTuple):
    """What the data of a scan must be like."""

    bits: int  # that an MCU has at least
    zeros: int  # bytes in a row that cannot be; 0: any number can


NO_DEMANDS = Demands(0, 0)


@lru_cache(64)
def extended(tables: Tables, segments: bytes) -> Tables:
    """By the tables of some more segments, whose lengths are possible."""
    known, quantisations, position = dict(tables.huffman), set(tables.quantisations), 0
    while position < len(segments):
        end = position + 2 + (segments[position + 2] << 8 | segments[position + 3])
        if segments[position + 1] == DHT:
            known |= _huffman(segments[position + 4 : end])
        else:
            quantisations |= _quantisations(segments[position + 4 : end])
        position = end
    return Tables(known, frozenset(quantisations))


def _huffman(segment: bytes) -> dict[int, Table]:
    if (found := huffman.tables(segment)) is None:
        raise Damaged("a Huffman table is damaged")
    return found


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
        raise Damaged(f"its size of {width} × {height} is not one that decoders accept")
    if precision != 8 and precision not in ((12,) if BASELINE < code <= PROGRESSIVE else range(2, 17)):
        raise Damaged(f"it cannot have {precision} bits per sample")
    components = _components(segment[6:])
    if not 1 <= len(components) <= 4 or len(components) != segment[5]:
        raise Damaged("its components are impossible")
    if not all(1 <= each.across <= 4 and 1 <= each.down <= 4 for each in components.values()):
        raise Damaged("its components are impossible")
    return Frame(code, precision, width, height, segment[5], segment[6:])


def _components(raw: bytes) -> dict[int, Component]:
    return {raw[at]: Component(raw[at + 1] >> 4, raw[at + 1] & 15, raw[at + 2]) for at in range(0, len(raw), 3)}


@lru_cache(256)
def scan(code: int, components: bytes, header: bytes) -> Scan:
    known, count = _components(components), header[0] if header else 0
    numbers, tables = header[1:-3:2], tuple((each >> 4, 0x10 | each & 15) for each in header[2:-3:2])
    if not 1 <= count <= 4 or len(header) != 4 + 2 * count or len(set(numbers) & known.keys()) != count:
        raise Damaged("the header of a scan is damaged")
    chosen = [known[number] for number in numbers]
    return Scan(
        numbers,
        chosen[0] if count == 1 else None,
        max(each.across for each in known.values()),
        max(each.down for each in known.values()),
        1 if code in LOSSLESS else BLOCK,
        tuple(each.across * each.down if count > 1 else 1 for each in chosen),
        frozenset() if code in LOSSLESS else frozenset(each.quantisation for each in chosen),
        tables,
        _needed(code, header[-3], header[-1], tables),
    )


def _needed(code: int, first: int, bits: int, tables: tuple[tuple[int, int], ...]) -> frozenset[int]:
    """In a progressive image first coefficients and others have scans of their own, and further bits of the first no
    table."""
    if code > PROGRESSIVE:
        return frozenset()
    if code < PROGRESSIVE:
        return frozenset(number for pair in tables for number in pair)
    return frozenset(ac if first else dc for dc, ac in tables) if first or bits < 16 else frozenset()


def demands(tables: Tables, frame: Frame, scan: Scan) -> Demands:
    if not scan.quantisations <= tables.quantisations:
        raise Damaged("a quantisation table is missing")
    if not tables.huffman and frame.code != PROGRESSIVE:  # a frame of a film, with the tables of the standard
        return NO_DEMANDS
    if not scan.needed <= tables.huffman.keys():
        raise Damaged("a Huffman table is missing")
    if frame.code >= PROGRESSIVE or frame.precision != 8:
        return NO_DEMANDS
    return _demands(tables, scan.blocks, scan.tables)


@lru_cache(64)
def _demands(tables: Tables, blocks: tuple[int, ...], numbers: tuple[tuple[int, int], ...]) -> Demands:
    coded = [
        Coded(count, tables.huffman[dc], tables.huffman[ac]) for count, (dc, ac) in zip(blocks, numbers, strict=True)
    ]
    bits = sum(each.blocks * (each.dc.shortest + each.ac.shortest) for each in coded)
    return Demands(bits, huffman.impossible_zeros(coded))
