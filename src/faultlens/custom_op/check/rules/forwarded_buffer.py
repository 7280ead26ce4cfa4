from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Forwarded, Input
from faultlens.custom_op.check.interpret.call_symbols import Braces
from faultlens.custom_op.check.interpret.composition import loops_in
from faultlens.custom_op.check.interpret.symbols import Int, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding


class ForwardedBuffer(Rule):
    """`forward_input_or_allocate_output` may give the input's own buffer as the output. An element of the input that
    is read after the output at its place was written is then the new value: reversals, shifts, neighbours and sums
    over rows come out wrong, but only where the buffer really was forwarded. Only ops that read each element before
    they write the same one may forward."""

    code = "OP131"
    slug = "forwarded-buffer"
    severity = "error"
    headline = "the output may be the input's buffer, and the input is read elsewhere than it is written"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        forwarded: dict[Symbol, tuple[Symbol, ...]] = {}
        for event in summary.of("output"):
            listed = event.point.shapes.get(Forwarded(event.on))
            if isinstance(listed, Braces):
                forwarded[event.on] = tuple(Input(each.value) for each in listed.values if isinstance(each, Int))
        for output, inputs in forwarded.items():
            writes = [event for event in good(summary.of("index")) if event.on == output and event.write]
            for event in good(summary.of("index")):
                if event.write or event.on not in inputs or not event.by:
                    continue
                clash = next((each for each in writes if _elsewhere(event.by, each.by)), None)
                if clash is not None:
                    name = tensor_named(event.on, summary.op)
                    context = context_of(event.node)
                    yield self.found(
                        event,
                        f"the output may be the buffer of {name}: this element may have been overwritten",
                        "allocate an output of its own",
                        f"OP_REQUIRES_OK({context}, {context}->allocate_output(0, shape, &y));",
                        summary=summary,
                        related=[("written here", clash.node)],
                    )
                    return


def _elsewhere(read: tuple[Symbol, ...], written: tuple[Symbol, ...]) -> bool:
    """Both depend on a counter of the same loop, and are not the same."""
    if read == written or len(read) != len(written):
        return False
    return any(
        one != other and set(loops_in(one)) & set(loops_in(other)) for one, other in zip(read, written, strict=True)
    )
