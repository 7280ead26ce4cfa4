from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.extents import dimension, extent
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Array,
    Dim,
    Element,
    Heap,
    NumElements,
    Output,
    Shape,
    ShapeOf,
    Temporary,
    is_tensor,
)
from faultlens.custom_op.check.interpret.composition import parts, tensors_in
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, minus
from faultlens.custom_op.check.interpret.symbols import ONE, UNKNOWN, ZERO, Loop, Symbol, Varying
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.wording import tensor_named
from faultlens.records.op_finding import OpFinding


class OutputNotWritten(Rule):
    """`allocate_output` gives memory as it is: what was there before. An element that no path writes has a value that
    changes from run to run, often 0 in small tests and rubbish in training; `y(i) += …` adds to that rubbish.

    ```cpp
    y->flat<float>().setZero();
    ```
    """

    code = "OP112"
    slug = "output-not-written"
    severity = "error"
    headline = "an output is allocated, and not all of it is written"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("index")):
            fresh = isinstance(event.on, (Output, Temporary, Array, Heap))
            if event.write and event.detail != "=" and fresh and event.on not in event.point.written:
                if isinstance(event.on, Temporary) and event.on not in event.point.shapes:
                    continue
                yield self._finding(event, summary, event.on, "is added to before anything was written there")
        yield from self._never(summary)
        yield from self._sometimes(summary)

    def _never(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        made = {event.on: event for event in summary.of("output") if "allocate" in event.name}
        for event in summary.of("exit"):
            if event.name not in ("end", "return") or event.point.failed is not None or not summary.whole:
                continue
            for output in sorted(event.point.outputs, key=repr):
                if (
                    output in made
                    and output not in event.point.written
                    and not _empty(event, output)
                    and _is_raw(output, summary.op)
                ):
                    where = made.pop(output)
                    says = "is allocated, and nothing is written to it on a path that ends well"
                    yield self._finding(where, summary, output, says, ended=event)

    def _sometimes(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        """if (x(i) > 0) y(i) = x(i); and nothing else writes."""
        writes: dict[Symbol, list[Event]] = {}
        for event in good(summary.of("index")):
            if event.write and isinstance(event.on, Output):
                writes.setdefault(event.on, []).append(event)
        for output, events in writes.items():
            if len({event.node.start for event in events}) != 1 or any(output in each.point.written for each in events):
                continue
            event = events[0]
            if event.detail == "=" and _packed(event):
                yield self._finding(event, summary, output, "is filled from the front, and what is left has no value")
                continue
            if event.detail == "=" and (rest := _left_out(event)):
                yield self._finding(event, summary, output, rest)
                continue
            counter = event.by[0] if len(event.by) == 1 else UNKNOWN
            if not isinstance(counter, Loop) or event.detail != "=":
                continue
            if any(_on_data(fact.condition, counter) for each in events for fact in facts(each.point)) and _inside(
                event
            ):
                yield self._finding(event, summary, output, "is written only where a condition on the data holds")

    def _finding(
        self, event: Event, summary: FunctionSummary, buffer: Symbol, says: str, ended: Event | None = None
    ) -> OpFinding:
        name = tensor_named(buffer, summary.op) if isinstance(buffer, (Output, Temporary)) else "an array"
        return self.found(
            event,
            f"{name} {says}",
            "set it to something first",
            "output->flat<T>().setZero();" if isinstance(buffer, (Output, Temporary)) else "T values[n] = {};",
            summary=summary,
            related=[("this path ends here", ended.node)] if ended is not None and ended.name == "return" else (),
        )


def _empty(event: Event, output: Symbol) -> bool:
    """The path is for inputs without elements, as large as the output is; or nothing is known of its size."""
    shape = event.point.shapes.get(output)
    if not isinstance(shape, (Shape, ShapeOf)):
        return True
    if any(constant(dim) == 0 for dim in shape.operands()):
        return True
    speaks = {part for fact in event.point.facts for part in parts(fact.condition)}
    if any(dim in speaks for dim in shape.operands() if constant(dim) is None):
        return True
    asked = {part.subject for part in speaks if isinstance(part, (NumElements, Dim))}
    return not asked.isdisjoint({*tensors_in(shape), output})


def _is_raw(output: Symbol, op: Op | None) -> bool:
    """Strings, resources and variants are constructed; numbers are not."""
    index = output.index if isinstance(output, Output) else None
    if op is None or not isinstance(index, int) or index >= len(op.outputs):
        return False
    types = op.types_of(op.outputs[index])
    return types is None or not types & {"tstring", "ResourceHandle", "Variant"}


def _packed(event: Event) -> bool:
    """if (…) y(b, used++) = v; into an output that is as long as the input."""
    for at, index in enumerate(event.by):
        size = dimension(event.point, event.on, at) if len(event.by) > 1 else extent(event.point, event.on)
        if isinstance(index, Varying) and isinstance(size, (Dim, NumElements)) and is_tensor(size.subject):
            name = re.escape(index.name)
            steps = [
                node
                for node in event.point.function.body.find("update_expression")
                if re.search(rf"\b{name}\b", node.text)
            ]
            if len(steps) == 1 and _under_if(steps[0]):
                return True
    return False


def _left_out(event: Event) -> str:
    """for (i = 1; i < n - 1; ++i) y(i) = …, and nothing writes the ends."""
    index = event.by[0] if event.by else UNKNOWN
    size = extent(event.point, event.on) if len(event.by) == 1 else dimension(event.point, event.on, 0)
    if not isinstance(index, Loop) or index.step != 1 or event.point.parallel:
        return ""
    if size is None or constant(size) is not None:
        return ""
    first, beyond = constant(index.start), minus(size, index.limit)
    if first is not None and first > 0:
        return f"is written from element {first} on, and what is before has no value"
    if set(beyond) == {ONE} and beyond[ONE] > 0 and index.start == ZERO:
        return f"is not written to its end: the last {beyond[ONE]} have no value"
    return ""


def _under_if(node: Node) -> bool:
    """Inside of a loop, and not on all of its ways."""
    for above in node.above():
        if above.kind == "if_statement":
            return above.get("alternative") is None
        if above.kind in ("for_statement", "while_statement", "for_range_loop", "function_definition"):
            return False
    return False


def _on_data(condition: Symbol, counter: Symbol) -> bool:
    return any(isinstance(part, Element) and counter in parts(part) for part in parts(condition))


def _inside(event: Event) -> bool:
    """The condition stands around the write, and has no other branch."""
    child = event.node
    for above in event.node.above():
        if above.kind == "if_statement":
            then = above.get("consequence")
            leaves = then is not None and "continue" in then.text
            return above.get("alternative") is None and not leaves
        if above.kind == "compound_statement" and _skips(above, child):
            return True
        if above.kind in ("for_statement", "lambda_expression", "function_definition"):
            return False
        child = above
    return False


def _skips(block: Node, statement: Node) -> bool:
    """if (…) continue; before the statement in the same block."""
    for each in block.children:
        if each.start >= statement.start:
            break
        then = each.get("consequence") if each.kind == "if_statement" else None
        if then is not None and "".join(then.text.split()) in ("continue;", "{continue;}"):
            return True
    return False
