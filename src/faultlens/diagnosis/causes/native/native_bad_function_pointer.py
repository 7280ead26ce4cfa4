"""Did native code call through a function pointer that leads nowhere?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Finding, consider, evidence, join, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, foreign_calls, garbage, native_code
from faultlens.diagnosis.evidence.callbacks import temporary_callback
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Fault, Frame
from faultlens.records.diagnosis import Fix

_SET = safe("set the pointer before use, and check it before the call")


class NativeBadFunctionPointer(NativeCause):
    """
    ## What it is
    Native code called through a pointer that does not lead to code: a callback that was never set, one that was
    overwritten, or a ctypes callback whose Python object had been garbage-collected.

    ## How it looks
    SIGSEGV where the address is the program counter itself (an execute fault); where the pointer is no address at
    all, a protection fault at the `call` instruction; for a ctypes callback that is gone, any death between the
    library and Python.

    ## How to prove it
    The CPU could not fetch the instruction at that address; the frame below is the caller. For a callback: the
    object that `CFUNCTYPE(…)(function)` returned is not stored anywhere that lives as long as the library may call
    it.

    ## How to fix it
    Keep a reference to the callback object (`self._callback = CALLBACK(function)`) as long as the library holds it;
    set pointers to null and check them before the call.
    """

    slug = "native-bad-function-pointer"
    code = "FL611"
    headline = "native code called a function pointer that leads nowhere"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if fault is None or fault.signal not in ("SIGSEGV", "SIGBUS", "SIGILL"):
            return None
        if foreign_calls.calls_nowhere(case) is not None:
            return None  # Python did, not native code
        frame, callback = native_code.suspect(case), sources_of(case.crash).callback
        made = (f"{callback.name} makes a callback in {callback.place}", "source") if callback else None
        keep = safe("keep a reference to the callback object for as long as the library may call it")
        if callback and foreign_calls.in_callback(case):
            fact = ("it died on the way from the library back into Python, in ctypes' callback", "native stack")
            did = "called a ctypes callback whose object is gone"
            if frame is not None:
                return self.blame(case, frame, LIKELY + 0.1, did, fact, made, fix=keep)
            return _called_by_libc(case, did, keep, fact, made)
        if (unkept := temporary_callback(case)) is not None:
            return self._unkept(case, unkept, keep)
        if fault.access == "execute" and frame is None and case.custom_libraries and _called_from_ctypes(case):
            fact = (
                "ctypes had called a function whose last act was a jump there, or which is not there",
                "native stack",
            )
            what = f"a function pointer to {fault.address or 0:#x} was called, where there is no code"
            return self.blame_earlier(case, LIKELY, what, fact, made, fix=_SET)
        if fault.access == "execute" and frame is None and foreign_calls.called(case):
            fact = ("the CPU could not fetch an instruction there", "siginfo")
            did = f"led to a call of {fault.address or 0:#x}, where there is no code"
            return _called_by_libc(case, did, keep if callback else _SET, fact, made)
        if (
            frame is not None
            and frame is case.native_stack[0]
            and (value := accesses.called_no_address(case.crash, fault))
        ):
            return self._no_address(case, fault, frame, value, made)
        if fault.access != "execute" or frame is None or frame is not _caller(case):
            return None
        return self.blame(
            case,
            frame,
            STRONG,
            f"called through a pointer to {fault.address or 0:#x}, where there is no code",
            ("the CPU could not fetch an instruction there", "siginfo"),
            made,
            fix=keep if callback else _SET,
        )

    def _unkept(self, case: Case, made: Use, keep: Fix) -> Finding:
        """Its Python function was called, and died of being gone."""
        return Finding(
            strength=LIKELY + 0.1,
            title=f"a ctypes callback was called whose object is gone: {made.place} keeps no reference to it",
            evidence=join(
                case.fault_evidence[:1],
                evidence(
                    ("it died in Python's own code, called back by a foreign function through ctypes", "native stack"),
                    (f"{made.place} makes the callback {made.name}(…) as it passes it, and nobody keeps it", "source"),
                ),
            ),
            fixes=(keep, consider(f"self._callback = {made.name}(function)", "and pass self._callback")),
            location=made.location,
            op=made.name,
        )

    def _no_address(
        self, case: Case, fault: Fault, frame: Frame, where: str, made: tuple[str, str] | None
    ) -> Finding | None:
        """The CPU refuses the call itself. In memory that was freed, the pointer is just one of the things gone."""
        held = garbage.used_as_pointer(case.crash, fault)
        if accesses.freed_link(case.crash, fault) or (held and held.kind == "freed"):
            return None
        text = fault.instruction.text if fault.instruction else "the call"
        return self.blame(
            case,
            frame,
            LIKELY + 0.1,
            f"called a function pointer that is no address{f': it holds {held.words}' if held else ''}",
            (f"the CPU refused `{text}`: what {where} holds is no address of code", "instruction"),
            ("a pointer that was never set, or that was overwritten, looks like this", "registers"),
            made,
            fix=_SET,
        )


def _called_by_libc(case: Case, did: str, fix: Fix, *facts: tuple[str, str] | None) -> Finding:
    """A function of the system only calls the address that Python gave it."""
    return Finding(
        strength=LIKELY + 0.1,
        title=f"{foreign_calls.name_of(case)}, called through ctypes, {did}",
        evidence=join(case.fault_evidence, evidence(*facts)),
        fixes=(fix,),
    )


def _caller(case: Case) -> Frame | None:
    """Who called: the innermost frame that belongs to any library."""
    return next((frame for frame in case.native_stack if owner_of(frame) != "unknown"), None)


def _called_from_ctypes(case: Case) -> bool:
    caller = _caller(case)
    return caller is not None and "libffi" in (caller.library or "")
