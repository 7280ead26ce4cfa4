from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import consider
from faultlens.diagnosis.causes.gpu.base import KernelFault


class GpuMisalignedAddress(KernelFault):
    """
    ## What it is
    A GPU kernel accessed a value at an address that is not a multiple of its size. The GPU, unlike the CPU, insists
    on that: a `float4` needs 16 bytes.

    ## How it looks
    A Python exception with `CUDA_ERROR_MISALIGNED_ADDRESS` ("misaligned address") at a later call, no signal. The
    kernel log has Xid 13, `Graphics SM Warp Exception … Misaligned Address`.

    ## How to prove it
    `CUDA_LAUNCH_BLOCKING=1` for the line, `compute-sanitizer` for the kernel and the address.

    ## How to fix it
    Look for pointers that are cast to a wider type, and for views or slices with an odd offset that are handed to a
    kernel; copy them first (`tf.identity`, `.contiguous()`).
    """

    slug = "gpu-misaligned-address"
    code = "FL802"
    headline = "A GPU kernel accessed a misaligned address"
    said = re.compile(r"CUDA_ERROR_MISALIGNED_ADDRESS|cudaErrorMisalignedAddress|CUDA error: misaligned address")
    xids = (13,)
    what = "a GPU kernel accessed a value at an address that is not a multiple of its size"
    advice = consider("copy views and slices before they reach the kernel", "and look for pointers cast to wider types")
