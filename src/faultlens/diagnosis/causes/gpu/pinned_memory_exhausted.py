from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import gpu_error, pins_memory

_SAID = re.compile(
    r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|cuda(?:HostAlloc|MallocHost)|CUDA error: out of memory"
)


class PinnedMemoryExhausted(Cause):
    """
    ## What it is
    Page-locked ("pinned") host memory was asked for, and there was not enough: it must be real RAM, cannot be
    swapped, and counts against the limits of the machine and the container, although the error looks like one of the
    GPU.

    ## How it looks
    `cudaErrorMemoryAllocation` from `cudaHostAlloc` or `pin_memory()`, while the GPU has memory to spare.

    ## How to prove it
    The traceback ends in the call that pins; `free` and the memory limit of the control group show how much RAM there
    is.

    ## How to fix it
    Pin batches, not data sets; fewer loader workers and prefetched batches; `pin_memory=False` costs little when the
    copies are small.
    """

    slug = "pinned-memory-exhausted"
    code = "FL805"
    headline = "Page-locked host memory was used up"

    def examine(self, case: Case) -> Finding | None:
        error, pins = gpu_error(case, _SAID), pins_memory(case)
        if error is None or pins is None:
            return None
        total = case.crash.machine.memory_total if case.crash.machine else None
        return Finding(
            strength=STRONG,
            title="page-locked host memory could not be had: it must fit into RAM",
            evidence=evidence(
                (error.text, "error of the CUDA runtime"),
                (pins, "traceback"),
                (f"the machine has {total >> 20} MiB of RAM", "/proc/meminfo") if total else None,
            ),
            fixes=(
                consider(
                    "pin batches, not whole data sets", "pin_memory=False, or fewer workers and prefetched batches"
                ),
            ),
        )
