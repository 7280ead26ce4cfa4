"""Accesses of native code that went astray: past a buffer, or through an object that is none."""

from __future__ import annotations

import re

from faultlens.diagnosis.evidence.accesses import (
    is_accessible,
    is_protection_fault,
    misaligned,
    operand,
    ran_off,
    started_inside,
    target,
)
from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP, NULL_PAGE, distance_to_memory
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.native_code import in_heap_code
from faultlens.inspection.owners import is_runtime
from faultlens.records.crash import Fault

# An array that is overrun ends near memory of the program's; a pointer made of garbage does not.
REACH = 1 << 30
FARTHEST_MEMBER = 4096  # of an object that is null: what lies further is an element
_FULL = 1 << 64
_POINTER = 8  # bytes
_COPIES = re.compile(r"mem(?:cpy|move|set|cmp|chr)|str(?:len|cpy|cmp)|movs|stos|rep ")
_CALLS = re.compile(r"^(?:call|jmp)\b")


def through_bad_object(case: Case) -> bool:
    """A member of an object was read through a garbage pointer: no index, no vector, not near any memory."""
    fault = case.fault
    if fault is None or fault.instruction is None or case.is_null or in_copy(case) or in_heap_code(case):
        return False
    address, access = target(fault), operand(fault)
    if _CALLS.match(fault.instruction.text):
        return True
    if access is None or len(access.registers) != 1 or access.size > 8:
        return False
    if is_protection_fault(fault) or address is None or address >= CANONICAL_TOP:
        return True
    distance = distance_to_memory(case.crash, address)
    return distance is None or distance > REACH


def at_element_of_nothing(case: Case) -> bool:
    """The first element of data that are not there was accessed, not a member of an object that is not."""
    fault = case.fault
    access = operand(fault) if fault is not None and case.is_null else None
    if fault is None or access is None or fault.access == "execute":
        return False
    return in_copy(case) or (fault.address == 0 and (access.size != _POINTER or "mm" in _text(fault)))


def beside_null(case: Case) -> bool:
    """Not a null pointer alone was followed: an index or a length was added to it, or it is a small number itself.

    The data of an empty tensor lie at null: an index that leads out of them ends near it, -1 just below."""
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or fault.access == "execute":
        return False
    address, access = target(fault), operand(fault)
    if address is not None and address >= _FULL - NULL_PAGE:
        return True
    if not case.is_null or address is None or access is None or access.address != address:
        return False
    return any(access.registers.values()) or address >= FARTHEST_MEMBER


def past_buffer(case: Case) -> bool:
    """An element was accessed outside of its buffer: an index, a vector or a copy, or just behind memory."""
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or case.is_null or misaligned(fault) or in_heap_code(case):
        return False  # the allocator found its own notes, or a pointer to free, damaged
    address = target(fault)
    if address is None or address < NULL_PAGE:
        return False
    if fault.access == "write" and is_accessible(case.crash, address):
        return False  # it is there, and read-only
    if in_copy(case) or started_inside(case.crash, fault) or ran_off(case.crash, address):
        return True
    return not through_bad_object(case)


def in_copy(case: Case) -> bool:
    """libc was copying, or comparing, on behalf of others."""
    frame = case.stack[0] if case.stack else None
    if frame is None or not is_runtime(frame.library or ""):
        return False
    instruction = case.fault.instruction.text if case.fault and case.fault.instruction else ""
    return bool(_COPIES.search(frame.function) or _COPIES.search(instruction) or "mm" in instruction)


def _text(fault: Fault) -> str:
    return fault.instruction.text if fault.instruction else ""
