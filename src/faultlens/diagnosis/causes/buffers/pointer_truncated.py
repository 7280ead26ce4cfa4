"""Did a 64-bit pointer pass through a 32-bit integer?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, carried_out, written
from faultlens.diagnosis.evidence import accesses, foreign_calls
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of


class PointerTruncated(BufferCause):
    """
    ## What it is
    ctypes takes results and plain integers for C `int`s unless it is told otherwise. A pointer loses its upper half
    on the way, and what is left leads nowhere.

    ## How it looks
    SIGSEGV at an address below 4 GiB, or one that begins with 0xffffffff; the lower half is that of a real address.

    ## How to prove it
    There is live memory whose address has the same lower 32 bits, and the sources call the function without setting
    `restype` or `argtypes`.

    ## How to fix it
    Declare the function before the first call: `lib.malloc.restype = ctypes.c_void_p`, `lib.use.argtypes =
    [ctypes.c_void_p, ctypes.c_size_t]`.
    """

    slug = "pointer-truncated"
    code = "FL706"
    headline = "a 64-bit pointer went through a 32-bit integer"

    def examine(self, case: Case) -> Finding | None:
        fault, sources = case.fault, sources_of(case.crash)
        if fault is None or fault.signal != "SIGSEGV" or fault.access == "execute":
            return None
        whole, half = accesses.cut_pointer(case.crash, fault), accesses.is_half(fault)
        shown = sources.untyped_result or sources.untyped_argument or sources.narrowed
        through_ctypes = foreign_calls.called(case)
        if not (whole or half) or not (through_ctypes or (shown and carried_out(case))):
            return None
        strength = (PROVEN if whole else STRONG) if shown else LIKELY if whole else POSSIBLE
        address = accesses.target(fault) or 0
        name = f"lib.{shown.name}" if shown else "lib.function"
        return self.found(
            case,
            strength,
            f"a 64-bit pointer lost its upper half: {f'{whole:#x} became ' if whole else ''}{address:#x}",
            (f"{address:#x} is the lower half of {whole:#x}, where there is memory", "memory map") if whole else None,
            (f"{address:#x} consists of sign bits and a 32-bit number", "siginfo") if half else None,
            written(shown, "is used although ctypes was not told its types: it assumes 32-bit integers"),
            fixes=(
                safe(
                    "declare the types of the foreign functions before the first call",
                    f"{name}.restype = ctypes.c_void_p; {name}.argtypes = [ctypes.c_void_p, …]",
                ),
            ),
        )
