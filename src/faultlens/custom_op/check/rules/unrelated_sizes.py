from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import size_told, speaks_of
from faultlens.custom_op.check.dimensions import forgotten
from faultlens.custom_op.check.extents import dimension, extent, related
from faultlens.custom_op.check.interpret.buffer_symbols import (
    ByteSize,
    Dim,
    Element,
    Input,
    NumElements,
    Output,
    Pointer,
    Temporary,
    ViewDim,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import ElementCount, Result
from faultlens.custom_op.check.interpret.composition import loops_in, origins
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, factors, linear
from faultlens.custom_op.check.interpret.symbols import ONE, Conditional, Int, Limited, Loop, SizeOf, Symbol, is_binary
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding

_SIZES = (Dim, NumElements, ByteSize, ViewDim)


class UnrelatedSizes(Rule):
    """A loop that runs over one tensor and reads or writes another runs beyond the end of it where the caller gives
    the second a smaller size. Reading takes what lies behind; writing damages the heap, and the process dies later, in
    code that is not at fault. The sizes must be compared before:

    ```cpp
    OP_REQUIRES(ctx, x.NumElements() == w.NumElements(),
                errors::InvalidArgument("x and w must have the same number of elements"));
    ```
    """

    code = "OP103"
    slug = "unrelated-sizes"
    severity = "error"
    headline = "a tensor is indexed by the size of another, and nothing has compared the two"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("index")):
            if isinstance(event.on, (Input, Output, Temporary)) and not any(event.on.operands()):
                yield from self._index(event, summary)
        for event in good(summary.of("copy")):
            if event.detail != "text":
                yield from self._copy(event, summary)

    def _index(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        point = event.point
        if (pair := forgotten(event)) is not None:
            yield self._forgotten(event, summary, *pair)
            return
        for at, index in enumerate(event.by):
            counters = loops_in(index)
            if not counters or any(speaks_of(point, counter) for counter in counters) or _is_computed(index):
                continue
            many = len(event.by) > 1
            size = dimension(point, event.on, at) if many else extent(point, event.on)
            if size is None:
                continue
            own = _tensors_of(size) | {event.on}
            for counter in counters:
                others = _tensors_of(counter.limit)
                if not others or others & own or not _only_sizes(counter.limit):
                    continue
                if not related(point, others, own):
                    yield self._finding(event, summary, next(iter(sorted(others, key=repr))))
                    return
            count = _fixed_count(index)
            if count and isinstance(event.on, Input) and not size_told(point, event.on):
                yield self._too_small(event, summary, count)
                return

    def _copy(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        source, size = event.by[0], event.by[1]
        others = _tensors_of(size)
        if not others or not _only_sizes(size):
            return
        for side in (event.on, source):
            if not isinstance(side, Pointer) or not is_tensor(side.buffer):
                continue
            buffer = side.buffer
            known = extent(event.point, buffer)
            own = (_tensors_of(known) if known else set()) | {buffer}
            if known is None or others & own or related(event.point, others, own):
                continue
            yield self._finding(event, summary, next(iter(sorted(others, key=repr))), buffer)
            return

    def _finding(
        self, event: Event, summary: FunctionSummary, other: Symbol, buffer: Symbol | None = None
    ) -> OpFinding:
        target = buffer or event.on
        first, second = tensor_named(target, summary.op), tensor_named(other, summary.op)
        copied_to = isinstance(event.on, Pointer) and event.kind == "copy" and buffer == event.on.buffer
        verb = "written" if event.write or copied_to else "read"
        code = (
            f"OP_REQUIRES({context_of(event.node)}, {_call(target)}.NumElements() == {_call(other)}.NumElements(),\n"
            '            errors::InvalidArgument("the sizes do not fit"));'
        )
        return self.found(
            event,
            f"{first} is {verb} as far as {second} is long, and nothing has compared their sizes",
            "compare the sizes first",
            code,
            summary=summary,
        )

    def _forgotten(self, event: Event, summary: FunctionSummary, limit: Dim, own: Dim) -> OpFinding:
        sizes = [f"dimension {constant(dim.axis)} of {tensor_named(dim.subject, summary.op)}" for dim in (own, limit)]
        calls = [f"{_call(dim.subject)}.dim_size({constant(dim.axis)})" for dim in (own, limit)]
        return self.found(
            event,
            f"{sizes[0]} is read as far as {sizes[1]} is long, and the checks compare other dimensions",
            "compare these two",
            f"OP_REQUIRES({context_of(event.node)}, {calls[0]} == {calls[1]},\n"
            '            errors::InvalidArgument("the sizes do not fit"));',
            summary=summary,
        )

    def _too_small(self, event: Event, summary: FunctionSummary, count: int) -> OpFinding:
        name = tensor_named(event.on, summary.op)
        return self.found(
            event,
            f"{count} elements of {name} are read, and nothing has checked that it has as many",
            "check the size first",
            f"OP_REQUIRES({context_of(event.node)}, {_call(event.on)}.NumElements() >= {count},\n"
            f'            errors::InvalidArgument("at least {count} elements are needed"));',
            summary=summary,
        )


def _fixed_count(index: Symbol) -> int:
    """for (i = 0; i < 3; ++i) x(i)"""
    return (constant(index.limit) or 0) if isinstance(index, Loop) else 0


def _call(tensor: Symbol) -> str:
    return f"ctx->input({tensor.index})" if isinstance(tensor, Input) else "output"


def _tensors_of(symbol: Symbol) -> set[Symbol]:
    return {part.subject for part in origins(symbol) if isinstance(part, _SIZES) and is_tensor(part.subject)}


def _only_sizes(symbol: Symbol) -> bool:
    """A limit that also comes from elsewhere may be smaller."""
    if all(atom == ONE or all(isinstance(each, _SIZES) for each in factors(atom)) for atom in linear(symbol)):
        return True
    return (isinstance(symbol, (ByteSize, ElementCount)) or is_binary(symbol, "*")) and all(
        isinstance(part, (*_SIZES, Int, SizeOf, ElementCount, Input, Output, Temporary))
        or is_binary(part, "*", "+", "-")
        for part in origins(symbol)
    )


def _is_computed(index: Symbol) -> bool:
    """What a division or a function makes of the counter may stay small."""
    return any(
        isinstance(part, (Limited, Result, Conditional, Element)) or is_binary(part, "/", "%", ">>", "&")
        for part in origins(index)
    )
