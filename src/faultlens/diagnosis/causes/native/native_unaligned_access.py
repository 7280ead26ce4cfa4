"""Is it custom native code that used aligned vector instructions on memory that is not aligned?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, Finding, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, foreign_calls, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of

_SLICE = safe("read slices with unaligned_flat, or copy them", "Tensor::Slice need not be aligned: IsAligned() tells")


class NativeUnalignedAccess(NativeCause):
    """
    ## What it is
    Custom native code loads or stores vectors with instructions that need an aligned address (`_mm256_load_ps`,
    `vmovaps`), and the address is not a multiple of 16, 32 or 64. Slices of tensors and arrays are not aligned.

    ## How it looks
    SIGSEGV with the code `SI_KERNEL` and no address: a general protection fault. It is often mistaken for a null
    pointer.

    ## How to prove it
    The faulting instruction is an aligned one, and the address in its register is not a multiple of its size.

    ## How to fix it
    Use the unaligned forms (`_mm256_loadu_ps`, as fast on today's CPUs), handle the first elements one by one, and
    do not claim alignment with `assume_aligned` or `Eigen::Aligned`.
    """

    slug = "native-unaligned-access"
    code = "FL608"
    headline = "custom native code needs aligned memory and did not get it"

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if frame and case.check and "IsAligned" in case.check.text and not sources_of(case.crash).called("from_dlpack"):
            said = (f"{case.check.text} ({case.check.place})", "stderr")
            return self.blame(
                case, frame, LIKELY + 0.05, "used a slice of a tensor as an aligned one", said, fix=_SLICE
            )
        found = accesses.misaligned(fault) if fault else None
        if frame is None or fault is None or found is None or found.address is None or fault.instruction is None:
            return None
        from_python = foreign_calls.handed_in(case)
        return self.blame(
            case,
            frame,
            LIKELY + 0.1 if from_python else PROVEN,
            f"needs memory aligned to {found.size} bytes, and {found.address:#x} is not",
            (f"{fault.instruction.text} takes aligned addresses only", "instruction"),
            (f"{found.address:#x} is {found.address % found.size} bytes off a multiple of {found.size}", "registers"),
            fix=safe("use the unaligned loads and stores", "_mm256_loadu_ps for _mm256_load_ps"),
        )

    def rule_out(self, case: Case) -> str | None:
        fault = case.fault
        if fault is None or not accesses.is_protection_fault(fault) or not accesses.is_wild(fault):
            return None
        return "the protection fault came from an impossible address, not from an unaligned one"
