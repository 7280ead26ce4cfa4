"""What a word is that was used as a pointer and is none: text, numbers, the fill of an allocator.

It tells what was there instead: data that overwrote the pointer, or memory that was freed, or never set."""

from __future__ import annotations

import math
import struct
from typing import Literal, NamedTuple

from faultlens.diagnosis.evidence import accesses
from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP, NULL_PAGE
from faultlens.records.crash import Crash, Fault

Kind = Literal["text", "floats", "integers", "fill", "freed", "unset"]
DATA: tuple[Kind, ...] = ("text", "floats", "integers")
# What allocators with checks write into blocks that were freed, or not written to yet: Python's, jemalloc's, ASan's.
_FREED = (0xDD, 0x5A, 0xDB)
_UNSET = (0xCD, 0xA5, 0xBE)
_HALF = 1 << 32
_SMALLEST, _LARGEST = 1e-6, 1e7  # what numbers of a program are like
_SMALL_INTEGER = 4096
_SHORTEST_TEXT = 5


class Garbage(NamedTuple):
    kind: Kind
    words: str  # "the text 'epthwise'"


def used_as_pointer(crash: Crash, fault: Fault) -> Garbage | None:
    """What the pointer holds that the access, or the call, went through; None where it may have been an address."""
    for value in (accesses.jump(fault), accesses.pointer(fault)):
        if value is None or not accesses.leads_nowhere(crash, value):
            continue
        if value < CANONICAL_TOP and (accesses.is_near(crash, value) or accesses.cut_pointer(crash, fault)):
            continue
        return reads_as(value, perturbed(crash))
    return None


def perturbed(crash: Crash) -> int | None:
    """The byte that glibc was asked to write into freed blocks."""
    value = crash.program.environment.get("MALLOC_PERTURB_", "")
    return int(value) & 0xFF if value.isdecimal() and int(value) & 0xFF else None


def reads_as(value: int, freed: int | None = None) -> Garbage | None:
    octets = value.to_bytes(8, "little")
    text = octets.rstrip(b"\0")
    if len(set(octets)) == 1:
        return _fill(octets[0], freed)
    if len(text) >= _SHORTEST_TEXT and all(32 <= octet < 127 for octet in text):
        return Garbage("text", f"the text {text.decode('ascii')!r}")
    (double,) = struct.unpack("<d", octets)
    if value >= CANONICAL_TOP and _plausible(double) and double == round(double, 6):
        return Garbage("floats", f"the number {double:g}")
    low, high = struct.unpack("<2f", octets)
    if value >= NULL_PAGE and (_plausible(low) or low == 0) and (_plausible(high) or high == 0):
        return Garbage("floats", f"the numbers {low:g} and {high:g} (float32)")
    if _plausible(double) and value >= CANONICAL_TOP:
        return Garbage("floats", f"the number {double:g}")
    if 0 < value >> 32 < _SMALL_INTEGER and value % _HALF < _SMALL_INTEGER:
        return Garbage("integers", f"the numbers {value % _HALF} and {value >> 32} (int32)")
    if value % _HALF == value >> 32:
        return Garbage("integers", f"{value >> 32:#x} twice")
    return None


def _fill(octet: int, freed: int | None) -> Garbage | None:
    every = f"{octet:#04x} in every byte"
    if freed is not None and octet in (freed, freed ^ 0xFF):
        kind: Kind = "freed" if octet == freed else "unset"
        return Garbage(kind, f"{every}, MALLOC_PERTURB_'s fill of {_OF[kind]} memory")
    if octet in _FREED:
        return Garbage("freed", f"{every}, an allocator's fill of {_OF['freed']} memory")
    if octet in _UNSET:
        return Garbage("unset", f"{every}, an allocator's fill of {_OF['unset']} memory")
    return Garbage("fill", every) if octet not in (0, 0xFF) else None


_OF: dict[Kind, str] = {"freed": "freed", "unset": "unwritten"}


def _plausible(number: float) -> bool:
    return math.isfinite(number) and _SMALLEST <= abs(number) <= _LARGEST
