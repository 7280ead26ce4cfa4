from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.interpret.buffer_symbols import Dim, DType, Element, Input, NumElements, Rank, Shape
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of
from faultlens.records.op_finding import OpFinding

_ABOUT = (Rank, Dim, NumElements, Shape, DType)
_ENDS = ("abort", "exit", "_exit", "quick_exit", "terminate")


class ProcessEnded(Rule):
    """CHECK and `assert` end the process, and with it hours of training, where the caller gave a wrong input. They are
    for what cannot happen. What the caller decides (ranks, sizes, types, values) is checked with OP_REQUIRES, which
    becomes an error in Python. DCHECK checks nothing at all in a release."""

    code = "OP130"
    slug = "process-ended"
    severity = "warning"
    headline = "a wrong input ends the process instead of giving an error"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not summary.computes:
            return
        for event in good(summary.of("call")):
            context = context_of(event.node)
            if (
                event.detail == "check"
                and not event.name.startswith("D")
                and event.by
                and _about_input(event, event.by[0])
            ):
                asks = event.node.text.partition("(")[2].rpartition(")")[0]
                yield self.found(
                    event,
                    f"{event.name} ends the process where the input is wrong",
                    "return an error",
                    f'OP_REQUIRES({context}, {" ".join(asks.split())[:60]}, errors::InvalidArgument("…"));',
                    summary=summary,
                )
            elif event.name in _ENDS and event.node.get("function") is not None:
                yield self.found(
                    event, f"`{event.name}` ends the whole process", "return an error",
                    f'{context}->CtxFailure(errors::Internal("…"));\nreturn;', summary=summary,
                )  # fmt: skip


def _about_input(event: Event, condition: Symbol) -> bool:
    """It asks about an input what no OP_REQUIRES has asked before."""
    asked = {tensor for tensor in _asked_about(condition) if isinstance(tensor, Input)}
    known = {tensor for fact in facts(event.point) for tensor in _asked_about(fact.condition)}
    return bool(asked) and not asked & known


def _asked_about(condition: Symbol) -> Iterator[Symbol]:
    for part in parts(condition):
        if isinstance(part, _ABOUT):
            yield part.subject
        elif isinstance(part, Element):
            yield part.buffer
