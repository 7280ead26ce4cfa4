"""What the errors of GPU kernels have in common: they are noticed later than they happen."""

from __future__ import annotations

import re
from typing import ClassVar

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.gpu import gpu_error, launches_block
from faultlens.records.diagnosis import Fix

LATE = (
    "GPU kernels run on their own: the Python line is where the error was noticed, not where the kernel was launched",
    "CUDA programming model",
)


class KernelFault(Cause):
    """A fault inside of a GPU kernel, told by an error of the CUDA runtime and a line of the driver."""

    said: ClassVar[re.Pattern[str]]
    xids: ClassVar[tuple[int, ...]]
    what: ClassVar[str]
    advice: ClassVar[Fix]

    def examine(self, case: Case) -> Finding | None:
        error = gpu_error(case, self.said, *self.xids)
        if error is None:
            return None
        certain = error.log is not None or case.crash.outcome.kind == "exception"
        return Finding(
            strength=PROVEN if certain else STRONG,
            title=self.what,
            op=case.op,
            evidence=evidence(
                (error.text, "error of the CUDA runtime"),
                (error.log, "kernel log") if error.log else None,
                LATE if not launches_block(case.crash) else ("kernels were launched one at a time", "environment"),
            ),
            fixes=(
                self.advice,
                safe(
                    "run it again with CUDA_LAUNCH_BLOCKING=1",
                    "launches then wait, and the traceback ends at the culprit",
                ),
                consider("find the kernel and the thread with compute-sanitizer", "compute-sanitizer python train.py"),
            ),
        )
