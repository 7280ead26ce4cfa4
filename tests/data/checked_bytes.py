"""What a format says about bytes, for the tests of formats."""

from __future__ import annotations

import random

from faultlens.data.formats.base import Format, Item
from faultlens.data.look import Look, Wanted
from faultlens.data.source import MemorySource
from faultlens.records.scan import Checked, Flaw, Identity, Piece


def piece_of(format: Format, data: bytes, name: str, skip: tuple[str, ...] = ()) -> Piece:
    size = len(data)
    return Piece(path=name, format=format.name, start=0, end=size, identity=Identity(size=size), skip=skip)


def checked(format: Format, data: bytes, name: str = "", skip: tuple[str, ...] = ()) -> Checked:
    name = name or f"folder/data{format.suffixes[0]}"
    piece = piece_of(format, data, name, skip)
    look = Look(piece, Wanted())
    format.check(MemorySource(name, data), piece, look)
    return look.checked()


def flaws(format: Format, data: bytes, name: str = "") -> tuple[Flaw, ...]:
    return checked(format, data, name).flaws


def kinds(format: Format, data: bytes, name: str = "", skip: tuple[str, ...] = ()) -> list[str]:
    return [flaw.kind for flaw in checked(format, data, name, skip).flaws]


def items(format: Format, data: bytes, name: str = "") -> list[Item]:
    name = name or f"folder/data{format.suffixes[0]}"
    return list(format.items(MemorySource(name, data), piece_of(format, data, name)))


def unnoticed_cuts(format: Format, data: bytes, name: str = "", step: int = 1) -> list[int]:
    """Lengths to which the file can be cut without a word."""
    return [size for size in range(0, len(data), step) if not flaws(format, data[:size], name)]


def unnoticed_flips(format: Format, data: bytes, start: int, end: int, name: str = "") -> list[int]:
    """Bytes that can be changed without a word."""
    missed = []
    for position in range(start, end):
        damaged = bytearray(data)
        damaged[position] ^= 0x55
        if not flaws(format, bytes(damaged), name):
            missed.append(position)
    return missed


def noticed_damages(format: Format, data: bytes, times: int, seed: int, name: str = "") -> int:
    """Of so many files with some bytes changed at random. None of them may raise."""
    chance = random.Random(seed)
    noticed = 0
    for _ in range(times):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 8)):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        noticed += bool(flaws(format, bytes(damaged), name))
    return noticed
