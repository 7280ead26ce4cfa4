"""Frames of a stack that cannot be unwound: words that look like return addresses, marked as a guess."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from faultlens.inspection.maps import find
from faultlens.inspection.memory import Memory, read_u64
from faultlens.inspection.symbols import native_frames
from faultlens.records.crash import Frame, Mapping

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


def caller_of_jump(
    memory: Memory, program_counter: int, stack_pointer: int, mappings: Sequence[Mapping]
) -> Frame | None:
    """Who called an address that holds no code."""
    if _is_code(program_counter, mappings):
        return None
    address = read_u64(memory, stack_pointer)
    if address is None or not _follows_call(address, memory, mappings):
        return None
    return native_frames([address], mappings)[0]


def _stack(memory: Memory, stack_pointer: int, mappings: Sequence[Mapping]) -> bytes:
    start = stack_pointer & ~7
    mapping = find(mappings, start)
    if mapping is None:
        return b""
    data = memory.read(start, min(MAX_SCAN, mapping.end - start))
    return data[: len(data) & ~7]


def _follows_call(address: int, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    if not _is_code(address, mappings):
        return False
    code = memory.read(address - LONGEST_CALL, LONGEST_CALL).rjust(LONGEST_CALL, b"\0")
    if code[-5] == 0xE8:  # call rel32
        return True
    # call r/m64 is FF with 2 in the middle of the next byte, then 0 to 5 more bytes
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 for size in (2, 3, 4, 6, 7))


def _is_code(address: int, mappings: Sequence[Mapping]) -> bool:
    mapping = find(mappings, address)
    return mapping is not None and "x" in mapping.permissions
