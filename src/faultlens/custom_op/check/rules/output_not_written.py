from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.extents import dimension, extent
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Symbol, constant, is_tensor, minus, number, parts, tensors_in
from faultlens.custom_op.check.interpret.unit import Followed
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

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        for event in good(followed.of("index")):
            fresh = event.on[0] in ("output", "temp", "array") or (event.on[0] == "heap")
            if event.write and event.detail != "=" and fresh and event.on not in event.place.written:
                if event.on[0] == "temp" and event.on not in event.place.shapes:
                    continue
                yield self._finding(event, followed, event.on, "is added to before anything was written there")
        yield from self._never(followed)
        yield from self._sometimes(followed)

    def _never(self, followed: Followed) -> Iterator[OpFinding]:
        made = {event.on: event for event in followed.of("output") if "allocate" in event.name}
        for event in followed.of("exit"):
            if event.name not in ("end", "return") or event.place.failed is not None or not followed.whole:
                continue
            for output in sorted(event.place.outputs, key=repr):
                if (
                    output in made
                    and output not in event.place.written
                    and not _empty(event, output)
                    and _is_raw(output, followed.op)
                ):
                    where = made.pop(output)
                    says = "is allocated, and nothing is written to it on a path that ends well"
                    yield self._finding(where, followed, output, says, ended=event)

    def _sometimes(self, followed: Followed) -> Iterator[OpFinding]:
        """if (x(i) > 0) y(i) = x(i); and nothing else writes."""
        writes: dict[Symbol, list[Event]] = {}
        for event in good(followed.of("index")):
            if event.write and event.on[0] == "output":
                writes.setdefault(event.on, []).append(event)
        for output, events in writes.items():
            if len({event.node.start for event in events}) != 1 or any(output in each.place.written for each in events):
                continue
            event = events[0]
            if event.detail == "=" and _packed(event):
                yield self._finding(event, followed, output, "is filled from the front, and what is left has no value")
                continue
            if event.detail == "=" and (rest := _left_out(event)):
                yield self._finding(event, followed, output, rest)
                continue
            counter = event.by[0] if len(event.by) == 1 else ("unknown",)
            if counter[0] != "loop" or event.detail != "=":
                continue
            if any(_on_data(fact.condition, counter) for each in events for fact in facts(each.place)) and _inside(
                event
            ):
                yield self._finding(event, followed, output, "is written only where a condition on the data holds")

    def _finding(
        self, event: Event, followed: Followed, buffer: Symbol, says: str, ended: Event | None = None
    ) -> OpFinding:
        name = tensor_named(buffer, followed.op) if buffer[0] in ("output", "temp") else "an array"
        return self.found(
            event,
            f"{name} {says}",
            "set it to something first",
            "output->flat<T>().setZero();" if buffer[0] in ("output", "temp") else "T values[n] = {};",
            followed=followed,
            related=[("this path ends here", ended.node)] if ended is not None and ended.name == "return" else (),
        )


def _empty(event: Event, output: Symbol) -> bool:
    """The path is for inputs without elements, as large as the output is; or nothing is known of its size."""
    shape = event.place.shapes.get(output)
    if shape is None or shape[0] not in ("shape", "mkshape"):
        return True
    if shape[0] == "mkshape" and any(constant(dim) == 0 for dim in shape[1:]):
        return True
    speaks = {part for fact in event.place.facts for part in parts(fact.condition)}
    if any(dim in speaks for dim in shape[1:] if constant(dim) is None):
        return True
    asked = {part for fact in event.place.facts for part in parts(fact.condition) if part[0] in ("numel", "dim")}
    sizes = tensors_in(shape)
    return any(part[1] in sizes or part[1] == output for part in asked)


def _is_raw(output: Symbol, op: Op | None) -> bool:
    """Strings, resources and variants are constructed; numbers are not."""
    if op is None or not isinstance(output[1], int) or output[1] >= len(op.outputs):
        return False
    types = op.types_of(op.outputs[output[1]])
    return types is None or not types & {"tstring", "ResourceHandle", "Variant"}


def _packed(event: Event) -> bool:
    """if (…) y(b, used++) = v; into an output that is as long as the input."""
    for at, index in enumerate(event.by):
        size = dimension(event.place, event.on, at) if len(event.by) > 1 else extent(event.place, event.on)
        if index[0] == "vary" and size is not None and size[0] in ("dim", "numel") and is_tensor(size[1]):
            name = re.escape(str(index[1]))
            steps = [
                node
                for node in event.place.function.body.find("update_expression")
                if re.search(rf"\b{name}\b", node.text)
            ]
            if len(steps) == 1 and _under_if(steps[0]):
                return True
    return False


def _left_out(event: Event) -> str:
    """for (i = 1; i < n - 1; ++i) y(i) = …, and nothing writes the ends."""
    index = event.by[0] if event.by else ("unknown",)
    size = extent(event.place, event.on) if len(event.by) == 1 else dimension(event.place, event.on, 0)
    if index[0] != "loop" or index[5] != 1 or size is None or constant(size) is not None or event.place.parallel:
        return ""
    first, beyond = constant(index[3]), minus(size, index[4]) if index[4] else {(): 0}
    if first is not None and first > 0:
        return f"is written from element {first} on, and what is before has no value"
    if set(beyond) == {()} and beyond[()] > 0 and index[3] == number(0):
        return f"is not written to its end: the last {beyond[()]} have no value"
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
    return any(part[0] == "elem" and counter in parts(part) for part in parts(condition))


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
