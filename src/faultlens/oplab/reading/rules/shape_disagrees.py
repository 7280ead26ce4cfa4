from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.op_findings import OpFinding
from faultlens.oplab.reading.checked import rank_known, related
from faultlens.oplab.reading.events import Event
from faultlens.oplab.reading.registered import Op
from faultlens.oplab.reading.rule import Rule
from faultlens.oplab.reading.symbols import Symbol
from faultlens.oplab.reading.unit import Followed
from faultlens.oplab.reading.wording import tensor_named

_SAME_AS_INPUT = re.compile(r"set_output\(\s*(\d+)\s*,\s*\w+->input\(\s*(\d+)\s*\)\s*\)")
_FIXED = re.compile(r"set_output\(\s*(\d+)\s*,\s*\w+->(Scalar|Vector|Matrix)\s*\(")
_RANKS = {"Scalar": 0, "Vector": 1, "Matrix": 2}


class ShapeDisagrees(Rule):
    """A graph is built with what the shape function says; `Compute` allocates what it allocates. Where the two differ,
    layers are built for sizes that never come, gradients fail, and code that trusts the static shape (XLA, `tf.data`,
    memory planning) reads beyond the end."""

    code = "OP125"
    slug = "shape-disagrees"
    severity = "warning"
    headline = "the shape function says something else than Compute allocates"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        op = followed.op
        if op is None or op.shape_function is None:
            return
        said = _said(op)
        for event in followed.of("output"):
            if len(event.by) < 2 or not isinstance(event.on[1], int) or event.on[1] not in said:
                continue
            claimed, made = said[event.on[1]], event.by[1]
            if not _differ(claimed, made) and not _never_scalar(claimed, made, event):
                continue
            if claimed[0] == made[0] == "shape" and related(event.place, [claimed[1]], [made[1]]):
                continue
            yield self.found(
                event,
                f"{tensor_named(event.on, op)} gets {_words(made, op)}, and the shape function: {_words(claimed, op)}",
                "let both say the same",
                followed=followed,
                related=[("the shape function", op.shape_function)],
            )
            return


def _said(op: Op) -> dict[int, Symbol]:
    """What a simple shape function says of each output."""
    node = op.shape_function
    assert node is not None
    text = node.text
    if text.endswith("UnchangedShape"):
        return {0: ("shape", ("input", 0))}
    if text.endswith("ScalarShape"):
        return {0: ("mkshape",)}
    if node.kind != "lambda_expression" or "Merge" in text or "if (" in text or "if(" in text:
        return {}
    found: dict[int, Symbol] = {}
    for output, number in _SAME_AS_INPUT.findall(text):
        found[int(output)] = ("shape", ("input", int(number)))
    for output, kind in _FIXED.findall(text):
        found[int(output)] = ("mkshape", *(("unknown",) for _ in range(_RANKS[kind])))
    return found


def _differ(claimed: Symbol, made: Symbol) -> bool:
    if claimed[0] == made[0] == "shape":
        return bool(claimed[1] != made[1] and made[1][0] == "input")
    if claimed[0] == made[0] == "mkshape":
        return len(claimed) != len(made)
    if claimed[0] == "shape" and made[0] == "mkshape":
        return not _made_of(made, claimed[1])
    return False


def _never_scalar(claimed: Symbol, made: Symbol, event: Event) -> bool:
    """A scalar is promised, and the output gets the shape of an input whose rank nobody limits."""
    return claimed == ("mkshape",) and made[0] == "shape" and not rank_known(event.place, made[1])


def _made_of(shape: Symbol, tensor: Symbol) -> bool:
    """TensorShape({x.dim_size(0), x.dim_size(1)}) is the shape of x where x is a matrix."""
    return len(shape) > 1 and all(
        dim == ("dim", tensor, ("int", at)) or dim == ("numel", tensor) for at, dim in enumerate(shape[1:])
    )


def _words(shape: Symbol, op: Op) -> str:
    if shape[0] == "shape":
        return f"the shape of {tensor_named(shape[1], op)}"
    return "a scalar" if len(shape) == 1 else f"rank {len(shape) - 1}"
