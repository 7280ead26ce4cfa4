from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import consider
from faultlens.diagnosis.causes.gpu.base import KernelFault


class GpuIllegalAddress(KernelFault):
    """
    ## What it is
    A GPU kernel read or wrote an address at which the GPU has no memory: an index that leads out of its tensor, a
    pointer that was freed or belongs to another device. (Inside of the allocator's pages such an access goes
    unnoticed and damages other tensors.)

    ## How it looks
    No signal: a Python exception with `CUDA_ERROR_ILLEGAL_ADDRESS` ("an illegal memory access was encountered") at a
    later call, exit code 1. The kernel log has `NVRM: Xid … 31 … MMU Fault` with the address and the kind of access.

    ## How to prove it
    The Xid line names the process. `CUDA_LAUNCH_BLOCKING=1` makes the traceback end at the launch;
    `compute-sanitizer` names the kernel, the thread and the nearest allocation.

    ## How to fix it
    Check the indices and sizes that the kernel is given. The context is lost after such an error: the process must
    be restarted.
    """

    slug = "gpu-illegal-address"
    code = "FL801"
    headline = "A GPU kernel accessed memory that is not there"
    said = re.compile(r"CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress|an illegal memory access was encountered")
    xids = (31, 13)
    what = "a GPU kernel accessed an address at which there is no memory"
    advice = consider("check indices and sizes that the kernel is given", "gather, embedding and custom kernels first")
