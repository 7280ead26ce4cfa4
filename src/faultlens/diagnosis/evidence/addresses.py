"""What kind of address a fault happened at: null, the stack, a hole, the end of a file."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from faultlens.records.crash import Crash, Fault, FileState, Mapping

NULL_PAGE = 0x10000  # nothing can be mapped below; an offset into a null structure is smaller than that
PAGE = 4096
STACK_REACH = 64 * 1024  # a function may skip this much with one large local variable
LARGEST_FRAME = 64 << 20  # of one function's local variables
CANONICAL_TOP = 1 << 47


def is_null(fault: Fault) -> bool:
    return fault.signal == "SIGSEGV" and fault.address is not None and fault.address < NULL_PAGE


def is_canonical(address: int) -> bool:
    """In the program's half of the address space, or in the kernel's: between them are no addresses."""
    return address < CANONICAL_TOP or address >= (1 << 64) - CANONICAL_TOP


def mapping_at(crash: Crash, address: int) -> Mapping | None:
    index = bisect_right(crash.mappings, address, key=lambda mapping: mapping.start) - 1
    if index >= 0 and address < crash.mappings[index].end:
        return crash.mappings[index]
    return None


def hits_stack_end(crash: Crash, fault: Fault) -> bool:
    """The access went below the stack: within reach of the stack pointer, or of a pointer that left the stack."""
    pointer = _stack_pointer(crash, fault)
    if fault.signal not in ("SIGSEGV", "SIGBUS") or fault.address is None or pointer is None:
        return False
    if fault.address < NULL_PAGE:
        return False
    mapping = mapping_at(crash, fault.address)
    if mapping is not None and "w" in mapping.permissions:
        return False
    if -STACK_REACH <= fault.address - pointer <= PAGE:
        return _is_below_memory(crash, fault.address)
    stack = frame_mapping(crash, fault)
    return stack is not None and pointer <= fault.address < stack.start


def _stack_pointer(crash: Crash, fault: Fault) -> int | None:
    if "rsp" in fault.registers:
        return fault.registers["rsp"]
    return next((thread.stack_pointer for thread in crash.threads if thread.id == fault.thread), None)


def _is_below_memory(crash: Crash, address: int) -> bool:
    """Memory that may be a stack begins above, within reach of one function: else the stack pointer was overwritten."""
    above = bisect_right(crash.mappings, address, key=lambda mapping: mapping.start)
    near = (each for each in crash.mappings[above:] if each.start - address < LARGEST_FRAME)
    return not crash.mappings or any("w" in each.permissions for each in near)


def frame_mapping(crash: Crash, fault: Fault) -> Mapping | None:
    """The stack that the frame pointer lies in, where the stack pointer has left it: large local arrays do that."""
    pointer, frame = fault.registers.get("rsp", 0), fault.registers.get("rbp", 0)
    if not 0 < frame - pointer < LARGEST_FRAME:
        return None
    stack = mapping_at(crash, frame)
    return stack if stack is not None and "w" in stack.permissions and pointer < stack.start else None


def stack_size(crash: Crash, fault: Fault) -> int | None:
    """Size of the mapping that holds the stack, or that begins right above its guard page."""
    stack = frame_mapping(crash, fault)
    if stack is not None:
        return stack.end - stack.start
    pointer = fault.registers.get("rsp", 0)
    for mapping in crash.mappings:
        if "w" in mapping.permissions and mapping.start - STACK_REACH <= pointer < mapping.end:
            return mapping.end - mapping.start
    return None


class FileFault(NamedTuple):
    """An access to a mapped file."""

    mapping: Mapping
    offset: int  # in the file
    state: FileState | None


def file_at(crash: Crash, address: int) -> FileFault | None:
    mapping = mapping_at(crash, address)
    if mapping is None or not mapping.path or not mapping.path.startswith("/"):
        return None
    state = next((state for state in crash.files if state.path == mapping.path), None)
    return FileFault(mapping, mapping.offset + address - mapping.start, state)


def distance_to_memory(crash: Crash, address: int) -> int | None:
    """How far behind the nearest writable memory below the address lies; None when there is none."""
    ends = [mapping.end for mapping in crash.mappings if mapping.end <= address and "w" in mapping.permissions]
    return address - max(ends) if ends else None
