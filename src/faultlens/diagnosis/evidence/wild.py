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
from faultlens.inspection.owners import is_runtime

# An array that is overrun ends near memory of the program's; a pointer made of garbage does not.
REACH = 1 << 30
_COPIES = re.compile(r"mem(?:cpy|move|set|cmp|chr)|str(?:len|cpy|cmp)|movs|stos|rep ")
_CALLS = re.compile(r"^(?:call|jmp)\b")


def through_bad_object(case: Case) -> bool:
    """A member of an object was read through a garbage pointer: no index, no vector, not near any memory."""
    fault = case.fault
    if fault is None or fault.instruction is None or case.is_null or in_copy(case):
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


def past_buffer(case: Case) -> bool:
    """An element was accessed outside of its buffer: an index, a vector or a copy, or just behind memory."""
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or case.is_null or misaligned(fault):
        return False
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
