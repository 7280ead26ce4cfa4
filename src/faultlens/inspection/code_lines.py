"""Which part of the source an instruction belongs to, from the table of a code object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

CODE_UNIT = 2
ONE_LINE, NO_COLUMNS, LONG, NONE = range(10, 13), 13, 14, 15  # kinds of entries


class Location(NamedTuple):
    line: int
    column: int | None = None  # in bytes of UTF-8, from 0; None also where it ends on another line
    end_column: int | None = None


def location_in_pairs(table: bytes, line: int, offset: int) -> Location | None:
    """Python 3.10: how many bytes of instructions, how many lines further."""
    end = 0
    for at in range(0, len(table) - 1, 2):
        end += table[at]
        further = int.from_bytes(table[at + 1 : at + 2], "little", signed=True)
        line += further if further != -128 else 0
        if offset < end:
            return Location(line) if further != -128 else None
    return None


def location_in_entries(table: bytes, line: int, offset: int) -> Location | None:
    """From 3.11 on: Objects/locations.md of CPython."""
    at = end = 0
    while at < len(table):
        kind, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        rest = bytes(_rest(table, at + 1))
        if kind in (NO_COLUMNS, LONG):
            line += _signed(next(_numbers(rest), 0))
        elif kind in ONE_LINE:
            line += kind - ONE_LINE.start
        end += CODE_UNIT * units
        if offset < end:
            return None if kind == NONE else Location(line, *_columns(kind, rest))
        at += 1 + len(rest)
    return None


def _columns(kind: int, rest: bytes) -> tuple[int, int] | tuple[()]:
    if kind == LONG:
        numbers = list(_numbers(rest))
        return (numbers[2] - 1, numbers[3] - 1) if len(numbers) == 4 and not numbers[1] and numbers[2] else ()
    if kind == NO_COLUMNS or len(rest) < 1 + (kind in ONE_LINE):
        return ()
    if kind in ONE_LINE:
        return rest[0], rest[1]
    start = kind << 3 | rest[0] >> 4
    return start, start + (rest[0] & 15)


def _rest(table: bytes, at: int) -> Iterator[int]:
    """Only the first byte of an entry has its highest bit set."""
    while at < len(table) and not table[at] & 0x80:
        yield table[at]
        at += 1


def _numbers(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            yield value
            value = shift = 0


def _signed(value: int) -> int:
    return -(value >> 1) if value & 1 else value >> 1
