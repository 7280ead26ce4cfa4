from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, speaks_of
from faultlens.custom_op.check.index_range import highest
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Array,
    ByteSize,
    Dim,
    Element,
    Length,
    NumElements,
    Pointer,
    Retyped,
)
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.composition import origins, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, linear
from faultlens.custom_op.check.interpret.symbols import (
    UNKNOWN,
    Attr,
    Char,
    Int,
    Limited,
    Loop,
    Param,
    String,
    Symbol,
    Variable,
    is_binary,
)
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import size_of
from faultlens.records.op_finding import OpFinding

_COUNTS = (NumElements, Dim, ByteSize, Element, Attr)
_OPEN = (*_COUNTS, Length, Result)


class BufferOverflow(Rule):
    """An array of fixed length is filled with as much as the input has: `memcpy` of all its bytes, `strcpy` or
    `sprintf` of text from outside, a loop over it. What does not fit overwrites the stack behind the array, the return
    address among it: "stack smashing detected", or worse, nothing.

    Use `std::vector`, `std::string`, `snprintf`, or check the length first."""

    code = "OP127"
    slug = "buffer-overflow"
    severity = "error"
    headline = "an array of fixed length is filled by the length of the input"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("copy")):
            array = _array(event.on)
            if array is None:
                continue
            if event.detail == "text":
                if any(not isinstance(value, (String, Int, Char)) for value in event.by) and not _short(event):
                    yield self._finding(event, summary, f"`{event.name}` does not know how long the array is")
                continue
            size, room = event.by[1], constant(array.size)
            known = constant(size)
            if (
                known is not None
                and room is not None
                and known > room * (size_of(array.type) or 1)
                and event.name.startswith("mem")
            ):
                yield self._finding(event, summary, f"{known} bytes into {room * (size_of(array.type) or 1)}")
            elif (
                room is not None
                and any(isinstance(part, _COUNTS) for part in origins(size))
                and not _limited(event, size)
            ):
                yield self._finding(event, summary, "as much as the input has goes into an array of fixed length")
        for event in good(summary.of("index")):
            array = _array(event.on)
            if array is None or constant(array.size) is None or not event.by:
                continue
            index = event.by[0]
            loops = [part for part in origins(index) if isinstance(part, Loop)]
            high = highest(index) if loops else None
            open_ = [part for part in linear(high) if isinstance(part, (NumElements, Dim, Attr))] if high else []
            if open_ and not any(speaks_of(event.point, part) for part in (*open_, *loops)):
                yield self._finding(
                    event, summary, "the loop runs as far as the input, and the array has a fixed length"
                )

    def _finding(self, event: Event, summary: FunctionSummary, title: str) -> OpFinding:
        return self.found(
            event, title, "take what grows with the input, or check the length", "std::vector<float> values(n);",
            summary=summary,
        )  # fmt: skip


def _array(symbol: Symbol) -> Array | None:
    if isinstance(symbol, Pointer):
        symbol = symbol.buffer.buffer if isinstance(symbol.buffer, Retyped) else symbol.buffer
    return symbol if isinstance(symbol, Array) else None


def _limited(event: Event, size: Symbol) -> bool:
    if any(_limits(part) for part in parts(size)):
        return True
    return any(
        part in parts(fact.condition) for fact in facts(event.point) for part in parts(size) if isinstance(part, _OPEN)
    )


def _limits(symbol: Symbol) -> bool:
    return is_binary(symbol, "%") or (isinstance(symbol, Limited) and symbol.function in ("min", "clamp"))


def _short(event: Event) -> bool:
    """A check of the length, or numbers only: sprintf(buffer, "%d", i) with room for any number."""
    checked = any(
        part in parts(fact.condition)
        for fact in facts(event.point)
        for value in event.by
        for part in parts(value)
        if isinstance(part, (*_OPEN, Param, Variable))
    )
    form = event.by[0] if event.by else UNKNOWN
    if event.name == "sprintf" and isinstance(form, String) and "%s" not in form.text:
        return True
    return checked
