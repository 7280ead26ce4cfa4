from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import gpu_error

_SAID = re.compile(
    r"Cannot re-initialize CUDA in forked subprocess|CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError"
    r"|initialization error[^\n]*fork|CUDA error: initialization error"
)
_FORKED = re.compile(r"forked subprocess|multiprocessing/|ForkPoolWorker|ForkProcess|/popen_fork\.py")


class GpuFork(Cause):
    """
    ## What it is
    The program used CUDA, then forked, and the child used CUDA again. A CUDA context does not survive a fork: the
    child has the memory of it, without the threads and the driver's side.

    ## How it looks
    RuntimeError in the child: "Cannot re-initialize CUDA in forked subprocess", or `CUDA_ERROR_NOT_INITIALIZED`.
    Other libraries hang instead.

    ## How to prove it
    The error comes from a process of `multiprocessing` with the start method "fork", after the parent used the GPU.

    ## How to fix it
    `multiprocessing.set_start_method("spawn")` before the first process, or do not touch the GPU before forking.
    """

    slug = "gpu-fork"
    code = "FL807"
    headline = "CUDA was used in a forked child"

    def examine(self, case: Case) -> Finding | None:
        error = gpu_error(case, _SAID)
        stderr = case.crash.output.stderr or ""
        if error is None or not _FORKED.search(stderr):
            return None
        return Finding(
            strength=PROVEN if "forked subprocess" in error.text else STRONG,
            title="the GPU was used in a child that was forked after the parent had used it",
            evidence=evidence(
                (error.text, "error of the CUDA runtime"),
                ("it was raised in a process of multiprocessing", "traceback"),
            ),
            fixes=(
                safe('start processes with "spawn"', 'multiprocessing.set_start_method("spawn")'),
                consider("do not use the GPU before the processes are started"),
            ),
        )
