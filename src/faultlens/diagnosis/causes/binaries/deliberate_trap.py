from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.ops import native_place
from faultlens.inspection.owners import owner_of
from faultlens.system.cpu import is_trap


class DeliberateTrap(Cause):
    """
    ## What it is
    The code executed an instruction whose only purpose is to stop the program (`ud2`, `int3`). Compilers put it
    where `__builtin_trap()` stands, behind `__builtin_unreachable()` and failed checks of hardened builds or
    `-fsanitize-trap`, and at the end of functions that forget to return a value.

    ## How it looks
    SIGILL (`ud2`) or SIGTRAP (`int3`) without any message. It is often taken for a CPU that is too old.

    ## How to prove it
    The bytes at the faulting address are `0f 0b` (or `cc`): no CPU lacks that instruction.

    ## How to fix it
    Read the function that trapped: which state did its author think impossible? A default branch without `return`,
    an enum value it does not know, a violated precondition. Compile it with warnings (`-Wall -Wreturn-type`).
    """

    slug = "deliberate-trap"
    code = "FL402"
    headline = "The code executed a trap instruction on purpose"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if fault is None and case.crash.outcome.signal == "SIGTRAP":
            return _only_the_signal(case)
        if fault is None or fault.signal not in ("SIGILL", "SIGTRAP") or case.sent or case.check is not None:
            return None
        instruction = fault.instruction
        if instruction is None or not is_trap(instruction):
            return None
        frame = case.culprit
        place = native_place(frame) if frame else "native code"
        library = (instruction.library or "code made at run time").rpartition("/")[2]
        return Finding(
            strength=PROVEN if instruction.library else LIKELY,
            title=f"{place} of {library} stopped the program with a trap instruction",
            op=case.op if frame and owner_of(frame) == "tensorflow" else None,
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"`{instruction.text}` ({instruction.code}) exists to stop a program", "instruction"),
                (f"in {place} of {library}" + _source(case), "native stack"),
                ("every x86 CPU has it: the CPU is not too old", "instruction"),
            ),
            fixes=(
                consider(
                    f"read {place}{_source(case)} for a state it does not expect",
                    "unknown enum values, a missing return, a failed precondition",
                ),
                consider(f"check what is passed to {place}", "the values on the calling line decided that it trapped"),
            ),
        )


def _only_the_signal(case: Case) -> Finding:
    """Debuggers aside, nothing but a breakpoint instruction raises SIGTRAP."""
    logged = next((line for line in case.crash.kernel_log if "trap int3" in line or "trap debug" in line), None)
    return Finding(
        strength=STRONG if logged else LIKELY,
        title="native code stopped the program with a breakpoint instruction (int3)",
        evidence=evidence(
            ("ended by SIGTRAP", "wait status"),
            (logged, "kernel log") if logged else ("only a breakpoint instruction raises SIGTRAP by itself", "signal"),
        ),
        fixes=(consider("find the code that traps", "run it in a debugger: it stops at the instruction"),),
    )


def _source(case: Case) -> str:
    frame = case.culprit
    return f" ({frame.file.rpartition('/')[2]}:{frame.line})" if frame and frame.file and frame.line else ""
