"""Does a custom op read a tensor as another type than it has?"""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, Finding, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import native_code
from faultlens.diagnosis.evidence.case import Case

# tensor.cc: "Check failed: dtype() == expected_dtype (3 vs. 1) float expected, got int32"
_WRONG_TYPE = re.compile(r"\bdtype\(\) ==|expected_dtype|dtype_ ==|\bexpected, got \w+")
INVALID = re.compile(r"\(0 vs\. \d+\)|got (?:DT_)?INVALID|got invalid", re.I)


class NativeWrongDtype(NativeCause):
    """
    ## What it is
    A custom op reads a tensor as a type that it does not have: `x.flat<float>()` of an int32 tensor. TensorFlow
    checks this and ends the process.

    ## How it looks
    SIGABRT with `Check failed: dtype() == expected_dtype (3 vs. 1) float expected, got int32`, below the op's
    `Compute`.

    ## How to prove it
    The message names both types; the stack names the op. The op was registered for more types (`Attr("T: {float,
    int32}")`) than its kernel handles.

    ## How to fix it
    Register a kernel per type (`TypeConstraint<float>("T")`, a template for the kernel), or restrict the op's
    attribute. Until then cast in Python: `op(tf.cast(x, tf.float32))`.
    """

    slug = "native-wrong-dtype"
    code = "FL612"
    headline = "a custom op read a tensor as the wrong type"

    def examine(self, case: Case) -> Finding | None:
        frame = native_code.suspect(case)
        if frame is None or case.check is None or not _WRONG_TYPE.search(case.check.text):
            return None
        if INVALID.search(case.check.text):
            return None  # a tensor that was never set
        return self.blame(
            case,
            frame,
            PROVEN,
            f"read a tensor as the wrong type: {case.check.text.rpartition(') ')[2]}",
            (f"{case.check.text} ({case.check.place})", "stderr"),
            fix=safe("register the kernel for each type with TypeConstraint, or cast the input in Python"),
        )
