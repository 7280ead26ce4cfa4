"""Did native code overwrite its own stack?"""

from __future__ import annotations

from collections.abc import Mapping

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Finding, Words, consider, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, messages, native_code
from faultlens.diagnosis.evidence.case import Case


class NativeStackSmash(NativeCause):
    """
    ## What it is
    Native code wrote past the end of an array on the stack (`char name[16]`), over its own return address.

    ## How it looks
    SIGABRT with `*** stack smashing detected ***` or `*** buffer overflow detected ***` when it was compiled with
    protection; without it, SIGSEGV at the `ret` of the function, or a jump to nowhere, and a stack that cannot be
    walked.

    ## How to prove it
    The message comes from a check at the end of the function, which the stack names. At a `ret`, the return address
    it found is not one.

    ## How to fix it
    Bound the copy by the size of the destination (`snprintf`, `std::string`, `std::vector`), and compile with
    `-fstack-protector-strong -D_FORTIFY_SOURCE=2` so that it is caught early.
    """

    slug = "native-stack-smash"
    code = "FL609"
    headline = "native code overwrote its own stack"
    of_memory = done_before = True
    words = Words(
        messages.STACK_SMASHED,
        "native code overran an array on its stack: {said}",
        consider("bound the write by the size of the array on the stack", "snprintf, std::string or std::vector"),
        LIKELY,
    )

    def examine(self, case: Case) -> Finding | None:
        fault, frame = case.fault, native_code.suspect(case)
        if fault is None or _for_select(case):
            return None
        fix = safe("bound the write by the size of the array on the stack", "snprintf, std::string or std::vector")
        said = case.said(messages.STACK_SMASHED) if case.signal == "SIGABRT" else None
        if said and frame:
            fact = (f"the check said: {said}", "abort message")
            return self.blame(case, frame, STRONG + 0.05, "wrote past the end of an array on its stack", fact, fix=fix)
        if said and case.custom_libraries:
            fact = (f"the check said: {said}", "abort message")
            return self.blame_earlier(case, LIKELY, "an array on the stack was overrun", fact, fix=fix)
        instruction = fault.instruction
        returns = instruction is not None and instruction.text.startswith("ret")
        if returns and frame and instruction and instruction.library in case.custom_libraries:
            fact = ("it died at its return: the return address on the stack is not one", "instruction")
            return self.blame(case, frame, STRONG, "overwrote its own return address", fact, fix=fix)
        if fault.access == "execute" and fault.address and case.custom_libraries and _from_data(fault.registers):
            fact = ("the address it returned to, and the registers saved beside it, hold data", "registers")
            return self.blame_earlier(case, LIKELY, "a return address on the stack was overwritten", fact, fix=fix)
        return None

    def read(self, case: Case) -> Finding | None:
        return None if _for_select(case) else super().read(case)


def _for_select(case: Case) -> bool:
    """Too many open files for select(), not a smashed stack."""
    return case.calls(r"__fdelt_chk") is not None


def _from_data(registers: Mapping[str, int]) -> bool:
    """The registers that a function restores before it returns hold the same kind of data as the return address."""
    restored = [registers[name] for name in ("rip", "rbp", "rbx", "r12") if registers.get(name)]
    return sum(accesses.is_data(value) for value in restored) >= 2
