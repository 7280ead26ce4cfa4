from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.extents import dimension, extent
from faultlens.custom_op.check.index_range import highest, lets_end_pass, lowest
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Dim,
    Element,
    Length,
    Memory,
    NumElements,
    Pointer,
    Retyped,
    Vector,
    ViewDim,
    is_tensor,
)
from faultlens.custom_op.check.interpret.composition import data_in, loops_in, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, is_constant, linear, minus
from faultlens.custom_op.check.interpret.symbols import (
    ONE,
    UNKNOWN,
    ZERO,
    Attr,
    Binary,
    Int,
    Loop,
    Param,
    SizeOf,
    Symbol,
    is_binary,
    number,
)
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import size_of
from faultlens.records.op_finding import OpFinding


class PastTheEnd(Rule):
    """The index leaves the buffer whatever the input is: `i <= n`, `x[i + 1]` in a loop to `n`, a loop longer than what
    was allocated. Writing there damages the heap or the stack: the process dies later, elsewhere, and not always.

    Where the loop must look at a neighbour, it ends earlier: `for (int64_t i = 0; i + 1 < n; ++i)`."""

    code = "OP108"
    slug = "past-the-end"
    severity = "error"
    headline = "an index that leaves the buffer by construction"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("index")):
            many = len(event.by) > 1
            for at, index in enumerate(event.by):
                size = dimension(event.point, event.on, at) if many else extent(event.point, event.on)
                beyond = _beyond(event, index, size)
                if beyond:
                    verb = "written" if event.write else "read"
                    yield self.found(
                        event, f"{beyond} is {verb}", "let the loop end where the buffer does", _fix(index),
                        summary=summary,
                    )  # fmt: skip
                    break
                if many and (swapped := _swapped(event, index, at)):
                    yield self.found(
                        event,
                        f"dimension {at} is indexed by a counter that runs over dimension {swapped - 1}",
                        "swap the indices, or the limits of the loops",
                        summary=summary,
                    )
                    break
        for event in good(summary.of("copy", "call")):
            if wide := _wide(event):
                yield self.found(
                    event, f"{wide}, and the last one is read or written beyond the end",
                    "let the loop end before the last full step, and treat the rest alone",
                    "for (; i + step <= n; i += step) …", summary=summary,
                )  # fmt: skip


_VECTOR = re.compile(r"_mm(256|512)?_(?:load|store|lddq|stream)u?_(?:ps|pd|si128|si256|si512|epi\d+)")


def _wide(event: Event) -> str:
    """for (i = 0; i < n; i += 8) memcpy(&word, bytes + i, 8), where n need not be a multiple of 8."""
    found = _VECTOR.fullmatch(event.name)
    if found is None and event.kind != "copy":
        return ""
    count = {None: 16, "256": 32, "512": 64}[found[1]] if found else _bytes(event)
    for pointer in event.by[:1] if found else (event.on, event.by[0]) if event.by else ():
        pointer = _before_casts(pointer)
        if not isinstance(pointer, Pointer) or not is_tensor(pointer.buffer):
            continue
        size = size_of(pointer.type)
        if size is None or count is None or count <= size:
            continue
        last = Binary("+", pointer.offset, number(count // size - 1))
        if _stepped(event, last):
            return f"{count} bytes at a time"
    return ""


def _before_casts(pointer: Symbol) -> Symbol:
    """What was cast to another type, where the result was not moved since."""
    while isinstance(pointer, Pointer) and isinstance(pointer.buffer, Retyped):
        cast = pointer.buffer.pointer
        if not isinstance(cast, Pointer) or cast.offset != pointer.offset:
            break
        pointer = cast
    return pointer


def _bytes(event: Event) -> int | None:
    """8, sizeof(uint64_t), sizeof(word)."""
    size = event.by[1] if len(event.by) > 1 else UNKNOWN
    if not isinstance(size, SizeOf):
        return constant(size)
    named = size.text.removeprefix("sizeof").strip("() ")
    declared = re.search(
        rf"([\w:]+)\s+(?:\w+[^,;()]*,\s*)*{re.escape(named)}\b\s*[;,=]", event.point.function.body.text
    )
    return size_of(named) or (size_of(declared[1]) if declared else None)


def _beyond(event: Event, index: Symbol, size: Symbol | None) -> str:
    counters = loops_in(index)
    if stepped := _stepped(event, index):
        return stepped
    if isinstance(event.on, Vector) and size == ZERO and ".reserve(" in event.point.function.body.text:
        return "an element of a vector that has none (reserve makes no elements)"
    if size is not None and any(data_in(index)) and lets_end_pass(event.point, index, size):
        return "the element behind the last, which the check lets pass,"
    guarded = any(part in parts(fact.condition) for fact in facts(event.point) for part in (index, *counters))
    if guarded:
        return ""
    if not counters and constant(index) is None:
        if size is not None and index == size:
            return "the element behind the last"
        return ""
    low = lowest(index)
    if low is not None and (least := constant(low)) is not None and least < 0 and not isinstance(event.on, Pointer):
        return f"element {least}"
    high = highest(index) if size is not None else None
    if high is None or size is None:
        return ""
    over = minus(high, size)
    if is_constant(over) and over.get(ONE, 0) >= 0:
        if constant(index) is not None and not isinstance(event.on, Memory):
            return ""
        count = over.get(ONE, 0) + 1
        return "the element behind the last" if count == 1 else f"up to {count} elements behind the end"
    return ""


def _stepped(event: Event, index: Symbol) -> str:
    """for (k = 0; k < n; k += 4) { x[k]; x[k + 3]; } where n need not be a multiple of 4."""
    atoms = linear(index)
    counters = [atom for atom in atoms if isinstance(atom, Loop)]
    offset = atoms.get(ONE, 0)
    if len(counters) != 1 or atoms[counters[0]] != 1 or not 0 < offset < (step := counters[0].step) or step > 64:
        return ""
    limit = counters[0].limit
    if not isinstance(limit, (NumElements, Dim, Element, Length, Attr, Param, ViewDim)):
        return ""
    told = any(part in parts(fact.condition) for fact in facts(event.point) for part in (index, counters[0]))
    asked = any(
        is_binary(part, "%") and limit in parts(part) for fact in facts(event.point) for part in parts(fact.condition)
    )
    return "" if told or asked else f"in steps of {step}, an element behind the last"


def _swapped(event: Event, index: Symbol, at: int) -> int:
    """The dimension that the counter runs over, plus one; 0 where it is the right one or not known."""
    if not isinstance(index, Loop) or not is_tensor(event.on):
        return 0
    limit, own = index.limit, dimension(event.point, event.on, at)
    if not isinstance(limit, Dim) or not isinstance(own, Dim) or limit == own or limit.subject != own.subject:
        return 0
    asked = any(limit in parts(fact.condition) or own in parts(fact.condition) for fact in facts(event.point))
    return limit.axis.value + 1 if isinstance(limit.axis, Int) and not asked else 0


def _fix(index: Symbol) -> str:
    counter = next(iter(loops_in(index)), None)
    if counter is None:
        return ""
    offset = linear(index).get(ONE, 0)
    inside = f"{counter.name} + {offset}" if offset > 0 else counter.name
    return f"for (…; {inside} < n; …)  // n: what the buffer holds"
