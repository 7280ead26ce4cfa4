from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.accesses import target
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import device_memory_at, uses_cuda
from faultlens.diagnosis.evidence.wordings import Wording

# How Python comes by the address of device memory.


class GpuHostDereference(Cause):
    """
    ## What it is
    Code on the CPU followed a pointer to memory of the GPU. The address looks like any other, but only the GPU can
    read it.

    ## How it looks
    SIGSEGV in host code: NumPy, ctypes, a C extension or a custom op that takes the tensor for one in host memory.

    ## How to prove it
    The fault address lies in a range that the CUDA driver reserved (in `/proc/PID/maps`: a large mapping without any
    permission, or one of `/dev/nvidia*`).

    ## How to fix it
    Copy the data to the host first (`.cpu()`, `.numpy()`, `cupy.asnumpy`, `cudaMemcpy`). In a custom op register the
    kernel for the CPU with host memory (`HostMemory("input")`) or write one for the GPU.
    """

    slug = "gpu-host-dereference"
    code = "FL806"
    headline = "Code on the CPU followed a pointer to GPU memory"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        address = target(fault) if fault else None
        if fault is None or fault.signal not in ("SIGSEGV", "SIGBUS") or address is None or case.hits_stack_end:
            return None
        device = device_memory_at(case.crash, address)
        taken = case.mentions(Wording.TAKES_GPU_ADDRESS) if uses_cuda(case.crash) and not case.is_null else None
        if device is None and taken is None:
            return None
        return Finding(
            strength=STRONG if device else LIKELY,
            title="code on the CPU followed a pointer to memory of the GPU",
            op=case.op,
            evidence=evidence(
                *case.fault_evidence,
                (device, "/proc/PID/maps") if device else None,
                (f"line {taken.line} takes the address of device memory: {taken.text}", "source") if taken else None,
            ),
            fixes=(consider("copy the data to the host first", ".cpu(), .numpy(), cupy.asnumpy() or cudaMemcpy"),),
        )
