"""Did a custom op return without setting its output?"""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Finding, evidence, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.causes.native.native_wrong_dtype import INVALID
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.custom_ops import loaded_ops, named_after
from faultlens.knowledge.op_names import registered

_MISSING = re.compile(r"Missing \d+-th output from (?:node )?(?:\{\{node )?(?P<node>[\w/.]+)\}*")
_NUMBERED = re.compile(r"_\d+$")  # the second node of an op, and so on


class NativeOutputNotSet(NativeCause):
    """
    ## What it is
    A path through a custom op's `Compute` returns without allocating its output. What the caller gets is an empty
    tensor without a type.

    ## How it looks
    Mostly nothing: the program goes on with an empty or old value. A later op may end the process because the
    tensor has no type (`Check failed: dtype() == expected_dtype (0 vs. 1)`).

    ## How to prove it
    Print the dtype and shape of the op's result: they are not what was declared. Call the op with each kind of
    input, among them the empty one.

    ## How to fix it
    Call `allocate_output` (or `set_output`) on every path that does not report an error, best at the top of
    `Compute`.
    """

    slug = "native-output-not-set"
    code = "FL615"
    headline = "a custom op did not set its output"

    def examine(self, case: Case) -> Finding | None:
        if (missing := self._missing(case)) is not None:
            return missing
        if case.check is None or "dtype" not in case.check.text or not INVALID.search(case.check.text):
            return None
        if not loaded_ops(case.crash) or not case.custom_libraries:
            return None
        return self.blame_earlier(
            case,
            LIKELY,
            "a tensor without a type or content was used: an output that was never set",
            (f"{case.check.text} ({case.check.place})", "stderr"),
            fix=safe("call allocate_output on every path of Compute that does not report an error"),
        )

    def _missing(self, case: Case) -> Finding | None:
        """In a graph TensorFlow notices, and names the node. The program may go on all the same: what it catches there,
        the next call outside of a graph gives it as an empty tensor."""
        texts = (case.exception.message if case.exception else "", case.crash.output.stderr or "")
        match = next((match for text in texts if (match := _MISSING.search(text))), None)
        node = _NUMBERED.sub("", match["node"].rpartition("/")[2]) if match else ""
        loaded = named_after(node, loaded_ops(case.crash))
        op = loaded or (node if not registered(node) else None)
        if match is None or not op or (case.exception is None and case.crash.outcome.kind != "ok"):
            return None
        survived = case.exception is None
        whose = "comes from a library that the program loads" if loaded else "is none of TensorFlow's own"
        return Finding(
            strength=STRONG,
            title=f"the custom op {op} returned without setting its output",
            evidence=evidence(
                (match[0], "stderr"),
                (f"{op} {whose}", "source" if loaded else "TensorFlow's ops"),
                ("outside of a graph nothing is said: the result is an empty tensor", "TensorFlow")
                if survived
                else None,
            ),
            fixes=(safe("call allocate_output on every path of Compute that does not report an error"),),
            op=op,
        )
