from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Input, Pointer
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding


class InputWritten(Rule):
    """The buffer of an input belongs to others as well: to the variable it came from, to other ops that read it, to a
    NumPy array, to a constant of the graph. Writing to it changes their values, at times that depend on the order of
    the ops. A Tensor that is copied shares the buffer too.

    ```cpp
    OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    ```

    gives the input's own buffer as output where nobody else needs it."""

    code = "OP122"
    slug = "input-written"
    severity = "error"
    headline = "the buffer of an input is written to"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        mutable = "mutable_input" in summary.function.node.text or "TF_" in summary.function.node.text
        cast = re.search(r"const_cast|\(\s*\w+\s*\*\s*\)", summary.function.node.text)
        for event in good(summary.of("index", "copy")):
            target = event.on.buffer if event.kind == "copy" and isinstance(event.on, Pointer) else event.on
            writes = event.write or event.kind == "copy"
            if not writes or not isinstance(target, Input) or mutable or _is_reference(summary):
                continue
            if cast or _is_copy(summary):
                context = context_of(event.node)
                yield self.found(
                    event,
                    f"this writes to the buffer of {tensor_named(target, summary.op)}, which others read",
                    "write to the output",
                    f"OP_REQUIRES_OK({context}, {context}->forward_input_or_allocate_output({{0}}, 0, shape, &y));",
                    summary=summary,
                )


def _is_copy(summary: FunctionSummary) -> bool:
    """Tensor y = ctx->input(0); y.flat<float>()(i) = …"""
    return bool(re.search(r"(?<!const )\bTensor\s+\w+\s*(?:=|\()", summary.function.node.text))


def _is_reference(summary: FunctionSummary) -> bool:
    """Ref(T) inputs are variables."""
    return summary.op is not None and "Ref(" in summary.op.node.text
