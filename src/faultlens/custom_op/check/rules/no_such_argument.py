from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Int
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.records.op_finding import OpFinding


class NoSuchArgument(Rule):
    """The kernel asks for an input or output with a number that the registration does not have: `ctx->input(2)` of an
    op with two inputs reads beyond the end of a vector, or ends the process."""

    code = "OP132"
    slug = "no-such-argument"
    severity = "error"
    headline = "an input or output is asked for that the op does not have"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        op = summary.op
        if op is None or any(each.many for each in (*op.inputs, *op.outputs)):
            return
        if len({kernel.op for kernel in summary.kernels}) > 1 or not summary.own_compute:
            return  # one class for several ops
        for event in summary.of("call", "output"):
            if event.kind == "call" and (event.name != "input" or event.detail != "context"):
                continue
            side, count = ("input", len(op.inputs)) if event.kind == "call" else ("output", len(op.outputs))
            asked = event.by[0] if event.by else UNKNOWN
            if isinstance(asked, Int) and not 0 <= asked.value < count:
                has = f"{op.name} has {count} {side}{'' if count == 1 else 's'}"
                yield self.found(
                    event, f"there is no {side} {asked.value}: {has}", "use a number that exists", summary=summary
                )
