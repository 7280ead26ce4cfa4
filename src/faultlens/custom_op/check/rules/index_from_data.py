from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.extents import extent
from faultlens.custom_op.check.interpret.buffer_symbols import Element
from faultlens.custom_op.check.interpret.composition import HIGH, LOW, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.symbols import UNKNOWN
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.limits import unlimited
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding

_LACKS = {frozenset({LOW}): "nothing stops a negative one", frozenset({HIGH}): "nothing limits it from above"}


class IndexFromData(Rule):
    """The values of a tensor are given by whoever calls the op. Used as an index without a check, one wrong value reads
    or writes anywhere: a segmentation fault at best, other people's data or a damaged heap at worst. Negative values
    are as wrong as large ones: `i < n` alone does not stop -1.

    ```cpp
    const int64_t i = internal::SubtleMustCopy(indices(k));
    OP_REQUIRES(ctx, FastBoundsCheck(i, n), errors::InvalidArgument("index ", i, " is not in [0, ", n, ")"));
    ```
    """

    code = "OP105"
    slug = "index-from-data"
    severity = "error"
    headline = "a value from a tensor is used as an index, and nothing has limited it"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("index")):
            for index in event.by:
                found = unlimited(event.point, index)
                if found is None or _fits(event, found[0]) or _made_for(event, found[0]):
                    continue
                data, sides = found
                name = tensor_named(data.buffer, summary.op)
                lacks = _LACKS.get(sides, "nothing has limited it")
                context = context_of(event.node)
                yield self.found(
                    event,
                    f"a value from {name} is used as an index, and {lacks}",
                    "check each value before it is used",
                    f"OP_REQUIRES({context}, FastBoundsCheck(index, limit),\n"
                    '            errors::InvalidArgument("index ", index, " is not in [0, ", limit, ")"));',
                    summary=summary,
                )
                break


def _made_for(event: Event, data: Element) -> bool:
    """The buffer was allocated with the same values."""
    shape = event.point.shapes.get(event.on, UNKNOWN)
    return any(isinstance(part, Element) and part.buffer == data.buffer for part in parts(shape))


def _fits(event: Event, data: Element) -> bool:
    """A byte into a table of 256."""
    size = extent(event.point, event.on)
    known = constant(size) if size is not None else None
    return known is not None and ((data.type == "uint8" and known >= 256) or (data.type == "bool" and known >= 2))
