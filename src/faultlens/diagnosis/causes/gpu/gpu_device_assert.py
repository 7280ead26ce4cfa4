from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import consider
from faultlens.diagnosis.causes.gpu.base import KernelFault


class GpuDeviceAssert(KernelFault):
    """
    ## What it is
    A GPU kernel checked its input and found it wrong, most often an index: a label or token that is not below the
    number of classes or the size of the embedding.

    ## How it looks
    A Python exception with `cudaErrorAssert` ("device-side assert triggered") at a later call, whose traceback "might
    be incorrect". Above it the kernel printed which assertion failed, once per thread. The kernel log has Xid 43.

    ## How to prove it
    The text of the assertion; the same batch on the CPU raises an exception that names the index.

    ## How to fix it
    Check labels and indices against the size of what they index before they are sent to the GPU. The context is lost
    after such an error: the process must be restarted.
    """

    slug = "gpu-device-assert"
    code = "FL803"
    headline = "A GPU kernel found its input wrong and stopped"
    said = re.compile(r"cudaErrorAssert|CUDA_ERROR_ASSERT|device-side assert triggered")
    xids = (43,)
    what = "a GPU kernel stopped at an assertion: most often an index that is out of range"
    advice = consider(
        "compare labels and indices with the size of what they index", "run the batch on the CPU for the value"
    )
