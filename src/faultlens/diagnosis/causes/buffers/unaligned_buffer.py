"""Was a buffer handed to code that requires alignment?"""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, written
from faultlens.diagnosis.evidence import accesses, foreign_calls, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of

_NOT_ALIGNED = re.compile(r"Check failed: .*(?:IsAligned|[Aa]ligned|% *(?:EIGEN_MAX_ALIGN|kAlign|Allocator::k))")
_ALIGNMENT = 64  # what TensorFlow wants (EIGEN_MAX_ALIGN_BYTES)


class UnalignedBuffer(BufferCause):
    """
    ## What it is
    TensorFlow wants the memory of tensors to start at a multiple of 64 bytes (16 in older releases). Memory that it
    only borrows, through dlpack, may start anywhere: a slice `a[1:]`, a view behind a header.

    ## How it looks
    SIGABRT with `Check failed: IsAligned() ptr = 0x…84` in the first op that uses the tensor; or SIGSEGV with
    `SI_KERNEL` at an aligned vector instruction.

    ## How to prove it
    The pointer in the message is not a multiple of 64. In Python: `array.ctypes.data % 64`.

    ## How to fix it
    Copy instead of sharing: `tf.constant(array)`, or make an aligned copy before `from_dlpack`.
    """

    slug = "unaligned-buffer"
    code = "FL704"
    headline = "a buffer is not aligned as native code requires"

    def examine(self, case: Case) -> Finding | None:
        sources, custom = sources_of(case.crash), native_code.suspect(case)
        check = case.check if case.check and _NOT_ALIGNED.search(case.check.text) else None
        found = accesses.misaligned(case.fault) if case.fault else None
        shared = sources.called("from_dlpack") or sources.borrowed_view
        if check is not None:
            strength = PROVEN if custom is None else LIKELY if shared else POSSIBLE
        elif found is not None and (custom is None or foreign_calls.died_in_it(case)):
            strength = (STRONG if shared else LIKELY) if custom is None else LIKELY - 0.1
        else:
            return None
        pointer = found.address if found else _pointer(check.text if check else "")
        return Finding(
            strength=strength,
            title=f"a buffer that is not aligned was handed to {case.op or 'native code'}",
            evidence=self.found(
                case,
                strength,
                "",
                (f"{check.text} ({check.place})", "stderr") if check else None,
                (
                    f"{pointer:#x} is {pointer % _ALIGNMENT} bytes off a multiple of {_ALIGNMENT}",
                    "registers and messages",
                )
                if pointer
                else None,
                written(shared, "shares memory instead of copying it"),
                fixes=(),
            ).evidence,
            fixes=(safe("copy instead of sharing", "tf.constant(array), or an aligned copy before from_dlpack"),),
            op=case.op,
        )


def _pointer(text: str) -> int | None:
    match = re.search(r"0x([0-9a-f]{1,16})\b", text)
    return int(match[1], 16) if match else None
