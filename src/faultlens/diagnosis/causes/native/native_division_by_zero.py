"""Is it custom native code that divided by zero?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import PROVEN, Finding, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import native_code
from faultlens.diagnosis.evidence.case import Case


class NativeDivisionByZero(NativeCause):
    """
    ## What it is
    Custom native code divided an integer by zero (or the smallest integer by -1). Floating-point division never
    does this: it gives infinity.

    ## How it looks
    SIGFPE with the code `FPE_INTDIV`, at a `div` or `idiv` instruction of the library.

    ## How to prove it
    The divisor's register holds 0. It is usually a size: an empty batch, an empty selection, a stride or group
    count of 0.

    ## How to fix it
    Treat the empty case before dividing, or reject it: `OP_REQUIRES(ctx, n > 0, errors::InvalidArgument(…))`. In
    Python, do not call the op with an empty array.
    """

    slug = "native-division-by-zero"
    code = "FL606"
    headline = "custom native code divided by zero"

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if frame is None or fault is None or fault.signal != "SIGFPE" or case.sent:
            return None
        return self.blame(
            case,
            frame,
            PROVEN,
            "divided an integer by zero",
            (f"the CPU refused {fault.instruction.text}", "instruction") if fault.instruction else None,
            fix=safe("check the divisor, often the size of an empty input, and report an error"),
        )
