from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, speaks_of
from faultlens.custom_op.check.index_range import highest
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Symbol, constant, linear, origins, parts
from faultlens.custom_op.check.interpret.unit import Followed
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import size_of
from faultlens.records.op_finding import OpFinding

_OPEN = ("numel", "dim", "bytes", "elem", "attr", "size", "call")
_COUNTS = ("numel", "dim", "bytes", "elem", "attr")


class BufferOverflow(Rule):
    """An array of fixed length is filled with as much as the input has: `memcpy` of all its bytes, `strcpy` or
    `sprintf` of text from outside, a loop over it. What does not fit overwrites the stack behind the array, the return
    address among it: "stack smashing detected", or worse, nothing.

    Use `std::vector`, `std::string`, `snprintf`, or check the length first."""

    code = "OP127"
    slug = "buffer-overflow"
    severity = "error"
    headline = "an array of fixed length is filled by the length of the input"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        for event in good(followed.of("copy")):
            array = _array(event.on)
            if array is None:
                continue
            if event.detail == "text":
                if any(value[0] not in ("str", "int", "char") for value in event.by) and not _short(event):
                    yield self._finding(event, followed, f"`{event.name}` does not know how long the array is")
                continue
            size, room = event.by[1], constant(array[3])
            known = constant(size)
            if (
                known is not None
                and room is not None
                and known > room * (size_of(array[2]) or 1)
                and event.name.startswith("mem")
            ):
                yield self._finding(event, followed, f"{known} bytes into {room * (size_of(array[2]) or 1)}")
            elif room is not None and any(part[0] in _COUNTS for part in origins(size)) and not _limited(event, size):
                yield self._finding(event, followed, "as much as the input has goes into an array of fixed length")
        for event in good(followed.of("index")):
            array = _array(event.on)
            if array is None or constant(array[3]) is None or not event.by:
                continue
            index = event.by[0]
            loops = [part for part in origins(index) if part[0] == "loop" and part[4]]
            high = highest(index) if loops else None
            open_ = [part for part in linear(high) if part and part[0] in ("numel", "dim", "attr")] if high else []
            if open_ and not any(speaks_of(event.place, part) for part in (*open_, *loops)):
                yield self._finding(
                    event, followed, "the loop runs as far as the input, and the array has a fixed length"
                )

    def _finding(self, event: Event, followed: Followed, title: str) -> OpFinding:
        return self.found(
            event, title, "take what grows with the input, or check the length", "std::vector<float> values(n);",
            followed=followed,
        )  # fmt: skip


def _array(symbol: Symbol) -> Symbol | None:
    if symbol[0] == "ptr":
        inner: Symbol = symbol[1]
        symbol = inner[1] if inner[0] == "retyped" else inner
    return symbol if symbol[0] == "array" else None


def _limited(event: Event, size: Symbol) -> bool:
    if any(part[0] in ("min", "clamp", "%") for part in parts(size)):
        return True
    return any(part in parts(fact.condition) for fact in facts(event.place) for part in parts(size) if part[0] in _OPEN)


def _short(event: Event) -> bool:
    """A check of the length, or numbers only: sprintf(buffer, "%d", i) with room for any number."""
    checked = any(
        part in parts(fact.condition)
        for fact in facts(event.place)
        for value in event.by
        for part in parts(value)
        if part[0] in (*_OPEN, "param", "var")
    )
    form = event.by[0] if event.by else ("unknown",)
    if event.name == "sprintf" and form[0] == "str" and "%s" not in str(form[1]):
        return True
    return checked
