from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Output
from faultlens.custom_op.check.interpret.call_symbols import Ok
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.state import ALL
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding


class OutputNotSet(Rule):
    """Every output must be allocated or set on every path that ends without an error. Where it is not, a graph fails
    with INTERNAL "Missing 0-th output from node", and in eager mode the result is silently a tensor of shape [0]
    (measured with TensorFlow 2.21).

    ```cpp
    if (x.NumElements() == 0) {
      Tensor* y = nullptr;
      OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
      return;
    }
    ```
    """

    code = "OP111"
    slug = "output-not-set"
    severity = "error"
    headline = "an output is not allocated on a path"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        op = summary.op
        if (
            op is None
            or not op.fixed_outputs
            or summary.function.name != "Compute"
            or not summary.whole
            or not summary.own_compute
        ):
            return
        told = set()
        for event in summary.of("exit"):
            if event.name not in ("end", "return") or event.point.failed is not None or _failed(event):
                continue
            for number in range(len(op.outputs)):
                if {Output(number), Output(op.outputs[number].name), ALL} & event.point.outputs:
                    continue
                if number in told:
                    continue
                told.add(number)
                where = event.node if event.name == "return" else _turn(event, summary, number)
                context = context_of(event.node)
                name = tensor_named(Output(number), op)
                path = "this return leaves" if event.name == "return" else "a path to the end leaves"
                yield self.found(
                    where or event.node,
                    f"{path} {name} without a tensor",
                    "allocate it on every path",
                    f"OP_REQUIRES_OK({context}, {context}->allocate_output({number}, shape, &output));",
                    summary=summary,
                )


def _turn(event: Event, summary: FunctionSummary, number: int) -> Node | None:
    """Where the path leaves those that allocate it: the branch that was taken instead."""
    made = [each.node for each in summary.of("output") if each.on == Output(number)]
    for way in event.point.branches:
        choice = way if way.kind == "if_statement" else next(
            (each for each in way.above() if each.kind in ("if_statement", "switch_statement")), way
        )  # fmt: skip
        if any(_within(node, choice) and (way is choice or not _within(node, way)) for node in made):
            return way.get("condition") if way is choice else way
    return summary.function.node.get("declarator")


def _within(node: Node, outer: Node) -> bool:
    return node.source is outer.source and outer.start <= node.start and node.end <= outer.end


def _failed(event: Event) -> bool:
    """A path on which something else failed: a status that is not ok was handled."""
    return any(isinstance(fact.condition, Ok) and not fact.holds for fact in event.point.facts)
