from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import gpu_error

_SAID = re.compile(
    r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver"
    r"|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch|Driver/library version mismatch"
    r"|unsupported display driver / cuda driver combination|PTX was compiled with an unsupported toolchain"
    r"|no kernel image is available for execution|CUDA_ERROR_NO_BINARY_FOR_GPU|cudaErrorNoKernelImageForDevice"
)


class GpuDriverMismatch(Cause):
    """
    ## What it is
    The program's CUDA libraries need a newer driver than the one that is installed, the driver's library and its
    kernel module differ in version (after an upgrade without a reboot), or the binaries hold no code for this GPU.

    ## How it looks
    An exception: "CUDA driver version is insufficient for CUDA runtime version", "Driver/library version mismatch",
    "no kernel image is available for execution on the device".

    ## How to prove it
    `nvidia-smi` shows the driver and the newest CUDA it supports; `/proc/driver/nvidia/version` the kernel module.

    ## How to fix it
    Install the build of the framework for a CUDA that the driver supports, or upgrade the driver; reboot after an
    upgrade.
    """

    slug = "gpu-driver-mismatch"
    code = "FL808"
    headline = "The GPU driver does not fit the program's CUDA"

    def examine(self, case: Case) -> Finding | None:
        error = gpu_error(case, _SAID)
        if error is None or case.crash.outcome.kind not in ("exception", "signal"):
            return None
        return Finding(
            strength=PROVEN,
            title="the GPU driver does not fit the CUDA that the program was built with",
            evidence=evidence(
                (error.text, "error of the CUDA runtime"),
                ("the runtime compares versions before it does anything else", "CUDA runtime"),
            ),
            fixes=(
                safe("compare driver and CUDA", "nvidia-smi shows the newest CUDA that the driver supports"),
                consider("install a build for that CUDA, or a newer driver", "and reboot after a driver upgrade"),
            ),
        )
