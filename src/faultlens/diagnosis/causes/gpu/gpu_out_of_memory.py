from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import gpu_error, pins_memory
from faultlens.diagnosis.evidence.leaks import evidence_of, fixes_of, growth_of

_SAID = re.compile(
    r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|RESOURCE_EXHAUSTED: Out of memory (?:while trying to allocate|allocating)|OOM when allocating[^\n]*\bGPU:\d"
    r"|cupy[\w.]*OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED"
)
_ON_CPU = re.compile(r"device:CPU:\d|by allocator (?:cpu|mklcpu)")


class GpuOutOfMemory(Cause):
    """
    ## What it is
    The memory of the GPU was used up: by this program, by another process on the same GPU, or by the allocator that
    keeps freed memory for itself.

    ## How it looks
    A Python exception: `torch.OutOfMemoryError: CUDA out of memory`, or `RESOURCE_EXHAUSTED: Out of memory` in
    TensorFlow and JAX, which names the size that was asked for. No signal: the kernel's OOM killer knows nothing of
    GPU memory.

    ## How to prove it
    `nvidia-smi` shows memory per process; the message says how much was free. faultlens records how the memory of
    the GPU grew, and what grew with it: a leak.

    ## How to fix it
    A smaller batch, mixed precision, gradient accumulation or checkpointing; `set_memory_growth` when several
    programs share the GPU; end processes that were left behind.
    """

    slug = "gpu-out-of-memory"
    code = "FL804"
    headline = "The memory of the GPU was used up"

    def examine(self, case: Case) -> Finding | None:
        error = gpu_error(case, _SAID)
        if error is None or pins_memory(case) or _ON_CPU.search(error.text):
            return None
        ended = case.crash.outcome.kind == "exception"
        growth = growth_of(case.crash, "GPU memory")
        return Finding(
            strength=PROVEN if ended else LIKELY,
            title="the memory of the GPU was used up",
            op=case.op,
            evidence=evidence(
                (error.text, "error of the CUDA runtime"),
                ("it ended with an exception: the kernel's OOM killer was not involved", "wait status")
                if ended
                else None,
                *evidence_of(growth),
                *case.fault_evidence[:1],
            ),
            fixes=(
                *fixes_of(growth),
                consider("use a smaller batch or model", "or mixed precision, gradient accumulation, checkpointing"),
                safe("look who else uses the GPU", "nvidia-smi lists the memory of every process"),
            ),
        )
