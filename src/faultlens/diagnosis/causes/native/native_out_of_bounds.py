"""Is it custom native code that left the bounds of its memory?"""

from __future__ import annotations

import re
from collections.abc import Mapping

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, safe
from faultlens.diagnosis.causes.native.base import RACED, NativeCause
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, garbage, native_code
from faultlens.diagnosis.evidence.addresses import mapping_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.records.crash import FencedBlock, Frame
from faultlens.records.diagnosis import Fix

# Assertions of libstdc++ and Eigen, and TensorFlow's about the shape that an op asked for.
_ASSERTED = re.compile(r"Assertion [^\n]*(?:size\(\)|index|bound|<|row|col)[^\n]*failed[^\n]*", re.I)
_CHECKED = re.compile(r"Check failed: .*(?:NDIMS|dims\(\)|NumElements|num_inputs|num_outputs|index|size)")


class NativeOutOfBounds(NativeCause):
    """
    ## What it is
    Custom native code read or wrote outside of the memory it was given: an index from the data that nobody checked,
    a length that was computed wrongly, a shape that it did not expect.

    ## How it looks
    SIGSEGV in a function of that library, at an address where nothing is mapped, or at the very end of a block.

    ## How to prove it
    The instruction's base register points to live memory and its index register leads out of it; or the address is
    the first one behind (or before) a mapping. AddressSanitizer names the line and the distance to the block.

    ## How to fix it
    Check indices and lengths against the shape of the tensors and report an error (`OP_REQUIRES`,
    `FastBoundsCheck`); pass the true length from Python.
    """

    slug = "native-out-of-bounds"
    code = "FL602"
    headline = "custom native code left the bounds of its memory"
    of_memory = True
    also_of_races = True

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if frame is not None and (said := _refused(case)):
            fact = (f"a check refused it: {said}", "stderr")
            # An assertion of the user's own says what it was meant for; it may be meant for anything.
            strength = LIKELY + 0.1 if case.check is not None else POSSIBLE
            return self.blame(
                case, frame, strength, "used an index or shape that does not exist", fact, fix=_check(case)
            )
        if case.block is not None:
            return self._by_fence(case, case.block, frame)
        if frame is None or fault is None or fault.signal not in ("SIGSEGV", "SIGBUS") or fault.access == "execute":
            return None
        address = accesses.target(fault)
        if case.is_null or case.hits_stack_end or address is None or accesses.misaligned(fault):
            return None
        if native_code.in_heap_code(case) or fault.code in ("BUS_ADRERR", "BUS_ADRALN"):
            return None
        if accesses.called_no_address(case.crash, fault):
            return None  # the call was refused, not an access
        inside, ran_off = accesses.started_inside(case.crash, fault), accesses.ran_off(case.crash, address)
        inside = inside and not accesses.is_wild(fault)
        handed_in = foreign_calls.handed_in(case)
        far = accesses.is_hole(case.crash, address) and not accesses.is_near(case.crash, address)
        held = garbage.used_as_pointer(case.crash, fault)
        ran_off = ran_off or ((far or _in_library(case, address)) and not handed_in and held is None)
        strength = STRONG if inside else LIKELY if ran_off else POSSIBLE - 0.05
        if not inside and native_code.run_in_parallel(case):
            strength = min(strength, RACED)  # others run the same kernel: what it shares may have vanished
        if native_code.on_own_thread(case) and sources_of(case.crash).release:
            strength = min(strength, POSSIBLE - 0.05)  # Python may have given back what the thread was still using
        registers = accesses.operand(fault)
        return self.blame(
            case,
            frame,
            strength,
            f"{'wrote' if fault.access == 'write' else 'read'} outside of its memory, at {address:#x}",
            ("the address was computed from a pointer to live memory and an index that leads out of it", "registers")
            if inside
            else None,
            ("the address lies beside or far from memory that is the code's own", "memory map") if ran_off else None,
            (f"{registers.expression} with {_values(registers.registers)}", "instruction")
            if registers and registers.registers
            else None,
            fix=_check(case),
        )

    def _by_fence(self, case: Case, block: FencedBlock, frame: Frame | None) -> Finding | None:
        """Who writes out of bounds damages the heap: that is another cause."""
        bounds = block.misuse in ("overflow", "underflow") and block.seen == "access"
        if not bounds or frame is None or case.fault is None or case.fault.access != "read":
            return None
        title = f"{native_code.place(frame)} read {fenced.place_in(block)}"
        return self.blame_by_fence(case, block, frame, PROVEN, title, _check(case))


def _check(case: Case) -> Fix:
    sizes = "shapes" if native_code.is_op(case) else "size of the memory"
    return safe(f"check indices and lengths against the {sizes}", native_code.reports_errors(case))


def _in_library(case: Case, address: int) -> bool:
    """In a library's constants or code: nobody hands these out as buffers."""
    mapping = mapping_at(case.crash, address)
    return mapping is not None and ".so" in (mapping.path or "") and "w" not in mapping.permissions


def _refused(case: Case) -> str | None:
    if case.signal != "SIGABRT":
        return None
    if case.check is not None:
        return case.check.text if _CHECKED.search(case.check.text) else None
    return case.said(_ASSERTED)


def _values(registers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value:#x}" for name, value in registers.items())
