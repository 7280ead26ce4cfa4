"""Frames of a stack that cannot be unwound: words that look like return addresses, marked as a guess."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from faultlens.capture.maps import find
from faultlens.capture.memory import Memory
from faultlens.capture.symbols import native_frames
from faultlens.crash import Frame, Mapping

MAX_SCAN = 64 << 10
MAX_FRAMES = 30
LONGEST_CALL = 7  # bytes: call [r12+rax*8+disp32]


def scan_stack(
    memory: Memory, program_counter: int, stack_pointer: int, mappings: Sequence[Mapping]
) -> tuple[Frame, ...]:
    """The frame at `program_counter`, which is sure, and those that may have called it."""
    addresses = [program_counter]
    for (word,) in struct.iter_unpack("<Q", _stack(memory, stack_pointer, mappings)):
        if len(addresses) <= MAX_FRAMES and word not in addresses and _follows_call(word, memory, mappings):
            addresses.append(word)
    first, *others = native_frames(addresses, mappings, interrupted=True)
    guesses = (
        Frame(
            kind="native",
            function=frame.function,
            library=frame.library,
            address=frame.address,
            offset=frame.offset,
            approximate=True,
        )
        for frame in others
    )
    return first, *guesses


def _stack(memory: Memory, stack_pointer: int, mappings: Sequence[Mapping]) -> bytes:
    start = stack_pointer & ~7
    mapping = find(mappings, start)
    if mapping is None:
        return b""
    data = memory.read(start, min(MAX_SCAN, mapping.end - start))
    return data[: len(data) & ~7]


def _follows_call(address: int, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    mapping = find(mappings, address)
    if mapping is None or "x" not in mapping.permissions:
        return False
    code = memory.read(address - LONGEST_CALL, LONGEST_CALL).rjust(LONGEST_CALL, b"\0")
    if code[-5] == 0xE8:  # call rel32
        return True
    # call r/m64 is FF with 2 in the middle of the next byte, then 0 to 5 more bytes
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 for size in (2, 3, 4, 6, 7))
