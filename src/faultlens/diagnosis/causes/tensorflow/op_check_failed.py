from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, Cause, Finding, Words, consider, evidence
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence import messages
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.checks import failed_check
from faultlens.diagnosis.evidence.explained import explained
from faultlens.inspection.owners import owner_of
from faultlens.text.safe import one_line

# Checks that fail for another reason than the arguments of the op, and what the reason is.
_OTHER_REASONS = (
    (re.compile(r"random_device|Too many open files|No space left"), "the system refused something"),
    (re.compile(r"cannot allocate|out of memory|bad_alloc|to allocate|size overflow", re.I), "it speaks of memory"),
    (re.compile(r"IsAligned|aligned"), "it speaks of how a buffer is aligned, which the op does not choose"),
    (re.compile(r"CUDA|cuDNN|cublas|GPU|stream_executor", re.I), "it speaks of the GPU"),
)
_NOT_OURS = re.compile(
    r"protobuf|Protocol Buffer|descriptor|compiled to use .* instructions|AVX"
    r"|pthread_create|thread creation|PThread|StartThread|Resource temporarily"
    r"|(?:distributed|coordination) service|Terminating process because",
    re.I,
)


class OpCheckFailed(Cause):
    """
    ## What it is
    TensorFlow's C++ code is full of statements of the form "this must hold" (`CHECK`). Where an op does not validate
    its arguments, bad ones reach such a statement, and TensorFlow ends the whole process instead of raising a Python
    exception.

    ## How it looks
    SIGABRT, and on stderr a line with `F` for fatal: `tensor_shape.cc:362] Check failed: d < dims() (1 vs. 0)`. The
    file in it is where the check stands, hardly ever the op at fault. Newer releases print a native stack below.

    ## How to prove it
    The first `…Op::Compute` on the native stack names the op. Call it alone with the same shapes and dtypes.

    ## How to fix it
    The text of the check says which property was violated (a rank, a size, a range): test it in Python before the
    call. Newer releases often reject such arguments with an exception.
    """

    slug = "op-check-failed"
    code = "FL501"
    headline = "An internal check of TensorFlow failed on the arguments it was given"
    words = Words(
        messages.FAILED_CHECK,
        "an internal check failed: {said}",
        consider("look at the arguments of the op that was running", "the check says which of their properties"),
        unless=messages.NOT_OF_ARGUMENTS,
    )

    def examine(self, case: Case) -> Finding | None:
        check = failed_check(case)
        if check is None or not (case.aborted or case.signal in ("SIGILL", "SIGTRAP")) or _NOT_OURS.search(check.text):
            return None
        reasons = tuple(reason for pattern, reason in _OTHER_REASONS if pattern.search(check.text))
        frame = next((frame for frame in case.native_stack if owner_of(frame) == "tensorflow"), None)
        if frame is None and case.native_stack:
            return None
        said = explained(case, self.slug, check.text)
        title = advice.titled(advice.at_work(case), said)
        return Finding(
            strength=_strength(case, frame is not None, reasons),
            title=title if said else one_line(f"{advice.at_work(case)} ended the process: {check.text}", 160),
            op=case.op,
            evidence=evidence(
                (one_line(f"{check.text} ({check.place})", 240), "stderr"),
                advice.place_evidence(case, frame),
                ("SIGABRT was raised by the program itself", "siginfo"),
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, *advice.argument_fixes(case, said)),
            against=reasons[:1],
        )


def _strength(case: Case, on_stack: bool, reasons: tuple[str, ...]) -> float:
    if reasons:
        return LIKELY
    if case.custom_frame is not None:
        return POSSIBLE  # a custom op called TensorFlow wrongly
    return PROVEN - 0.02 if on_stack else LIKELY
