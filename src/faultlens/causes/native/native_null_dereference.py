"""Is it custom native code that used a null pointer?"""

from __future__ import annotations

from faultlens.causes.base import LIKELY, POSSIBLE, STRONG, Finding, safe
from faultlens.causes.native.base import NativeCause
from faultlens.clues import accesses, native_code
from faultlens.clues.case import Case


class NativeNullDereference(NativeCause):
    """
    ## What it is
    Code of a custom op, an extension or a ctypes library used a pointer that is null: a lookup that found nothing,
    an allocation or a call that failed, an object that was never created.

    ## How it looks
    SIGSEGV at address 0 or a small one (the offset of a field), with a function of that library innermost.

    ## How to prove it
    The register the address was computed from holds 0. Built with `-g`, the report names the source line; look
    there for the pointer that is used without being checked.

    ## How to fix it
    Check the pointer where it is obtained and report an error: `OP_REQUIRES(ctx, table != nullptr,
    errors::NotFound(…))` in an op, a Python exception in an extension.
    """

    slug = "native-null-dereference"
    code = "FL601"
    headline = "custom native code used a null pointer"

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if frame is None or fault is None or not case.is_null or fault.access == "execute":
            return None
        if frame is not case.culprit:  # Python's or TensorFlow's code died below: it may have been given the null
            strength = POSSIBLE
        elif native_code.died_in_called_function(case) and accesses.passed_in(fault):
            strength = POSSIBLE  # the null may have come from Python
        else:
            strength = LIKELY if case.crash.exiting else STRONG
        return self.blame(
            case,
            frame,
            strength,
            "used a null pointer",
            (f"address {fault.address:#x} is null plus the offset of a field", "siginfo"),
            (f"at {fault.instruction.text}", "instruction") if fault.instruction and fault.instruction.text else None,
            fix=safe("check the pointer before use and return an error", "OP_REQUIRES in an op"),
        )
