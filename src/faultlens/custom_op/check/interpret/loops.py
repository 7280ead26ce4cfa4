"""What loops do to what is known: the counter runs between two limits, and what the body changes is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret import declarations
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Array,
    Element,
    Heap,
    Input,
    Length,
    NumElements,
    Pointer,
    Vector,
    View,
    buffer_of,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import Item, Result, Runs
from faultlens.custom_op.check.interpret.composition import parts, substitute
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.state import Fact, State
from faultlens.custom_op.check.interpret.symbols import (
    ONE,
    UNKNOWN,
    ZERO,
    Binary,
    Int,
    Loop,
    Member,
    Static,
    Symbol,
    Varying,
    is_binary,
    number,
)
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.functions import declared_type
from faultlens.custom_op.check.syntax.syntax import Node, name_of

UNKNOWN_STEP = 1_000_003  # no width of a vector divides it
MOST_INPUTS = 64
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def counted(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """for (begin; condition; step) body."""
    initializer, condition, update = node.get("initializer"), node.get("condition"), node.get("update")
    if initializer is not None:
        if initializer.kind != "declaration":
            for state in states:
                walker.evaluate(initializer, state)
        else:
            states = walker.statement(initializer, states)
    names = declarations.declared_in(initializer) if initializer is not None else set()
    ends = _loop(walker, node, states, condition, update)
    for end in ends:
        for name in names:
            end.variables.pop(name, None)
    return ends


def repeated(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """while, and do … while."""
    return _loop(walker, node, states, node.get("condition"), None)


def ranged(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """for (x : values) body."""
    declarator, right = node.get("declarator"), node.get("right")
    name = name_of(declarator)
    begins = []
    for state in states:
        for each, values in walker.fork(state, lambda one: walker.evaluate(right, one) if right else UNKNOWN):
            buffer = buffer_of(values)
            vary = Varying(name, node.start)
            each.variables[name] = Element(buffer, vary, "") if buffer else Item(values, vary)
            each.types[name] = declared_type(node, declarator) if declarator else ""
            begins.append(each)
    return _loop(walker, node, begins, None, None)


def _loop(walker: Walker, node: Node, states: list[State], condition: Node | None, update: Node | None) -> list[State]:
    frame = walker.frames[-1]
    changed = declarations.changed_in(node)
    ends: list[State] = []
    walker.loops += 1
    frame.breaks.append([])
    frame.continues.append([])
    try:
        for state in states:
            counter = _counter(walker, node, condition, update, state)
            _forget(walker, node, changed, counter, state)
            if counter is not None and _never_runs(counter):
                ends.append(state)
                continue
            _grow(node, changed, state)
            ends += _body(walker, node, state, condition, counter)
            if node.kind == "do_statement":
                ends = [
                    end for each in ends for end, _ in walker.fork(each, lambda one: _asked(walker, condition, one))
                ]
            if update is not None and counter is None:
                for end in ends[:1]:
                    walker.fork(end, lambda each: walker.evaluate(update, each))
        ends += frame.continues[-1]
    finally:
        walker.loops -= 1
        broken = frame.breaks.pop()
        frame.continues.pop()
    if node.kind == "for_range_loop" or (condition is not None and not _is_true(condition)):
        after = ends + broken or [state for state in states if state.feasible]
    else:
        after = broken  # nothing else ends it
    for end in after:
        _leave(walker, node, changed, end)
    return after


def _forget(walker: Walker, node: Node, changed: set[str], counter: Loop | None, state: State) -> None:
    """What the loop changes is not known in its body, but for the counter."""
    for name in changed - ({counter.name} if counter else set()):
        if name in state.variables:
            state.variables[name] = _varied(state.variables[name], name, node.start)
        if walker.owner is not None and name in walker.owner.members and name not in state.variables:
            state.members[name] = Member(name)
    if counter is not None:
        state.variables[counter.name] = counter


def _body(walker: Walker, node: Node, state: State, condition: Node | None, counter: Loop | None) -> list[State]:
    body = node.get("body")
    asked = condition if node.kind != "do_statement" else None  # that asks only behind the body
    ends: list[State] = []
    for inside, held in walker.fork(state, lambda each: _asked(walker, asked, each)):
        if counter is not None:
            inside.assume(Runs(counter, counter.limit), True, loop=True)
        if held is not None and (counter is None or is_binary(held, "&&")):  # i < n && more
            inside.assume(held, True, loop=True)
        if node.kind == "for_range_loop":
            inside.assume(Runs(Varying("", node.start), _range(node, inside)), True, loop=True)
        if inside.feasible and body is not None:
            ends += walker.statement(body, [inside])
    return ends


def _leave(walker: Walker, node: Node, changed: set[str], end: State) -> None:
    end.facts = tuple(fact for fact in end.facts if not fact.loop)
    end.facts += tuple(_for_each(walker, end))
    for name in changed:
        if isinstance(end.variables.get(name), Loop):
            end.variables[name] = Varying(name, node.end)


def _for_each(walker: Walker, end: State) -> Iterator[Fact]:
    """What was checked of ctx->input(i) in a loop holds for each of the inputs that it ran over."""
    for fact in end.facts:
        for part in parts(fact.condition):
            if isinstance(part, Input) and isinstance(part.index, Loop):
                first, beyond = constant(part.index.start), _beyond(walker, part.index.limit)
                for number in range(first or 0, min(beyond, MOST_INPUTS)):
                    each = Fact(substitute(fact.condition, part, Input(number)), fact.holds)
                    if each not in end.facts:
                        yield each


def _beyond(walker: Walker, limit: Symbol) -> int:
    if isinstance(limit, Result) and limit.function == "num_inputs" and walker.op is not None:
        return len(walker.op.inputs)
    return constant(limit) or 0


def _never_runs(counter: Loop) -> bool:
    first, beyond = constant(counter.start), constant(counter.limit)
    return first is not None and beyond is not None and beyond <= first


def _varied(old: Symbol, name: str, place: int) -> Symbol:
    """A variable that the loop changes; a pointer that is moved still points into its buffer."""
    vary = Varying(name, place)
    if isinstance(old, Pointer):
        return Pointer(old.buffer, vary, old.type)
    if isinstance(old, (Array, Heap)):
        return Pointer(old, vary, old.type)
    return old if isinstance(old, (View, Static)) else vary


def _grow(node: Node, changed: set[str], state: State) -> None:
    """Containers have any length in the body, and what points into them may point elsewhere."""
    grown = _grown_in(node, state)
    state.invalidated |= {name for name, owner in state.references.items() if owner in grown and name not in changed}
    state.shapes.update({each: Length(each.changed_at(node.start)) for each in grown if isinstance(each, Vector)})


_GROWS = ("push_back", "emplace_back", "insert", "resize", "erase", "clear", "reserve", "assign", "emplace")


def _grown_in(node: Node, state: State) -> set[Symbol]:
    """Containers that an earlier round of the loop may have made longer, and whose elements it may have moved."""
    grown = set()
    for call in node.find("call_expression"):
        function = call.get("function")
        owner = function.get("argument") if function is not None and function.kind == "field_expression" else None
        if owner is not None and name_of(function) in _GROWS and owner.text in state.variables and not leaves(call):
            grown.add(state.variables[owner.text])
    return grown


def leaves(node: Node) -> bool:
    """The block around it ends the loop."""
    block = next((each for each in node.above() if each.kind == "compound_statement"), None)
    last = block.children[-1].kind if block is not None and block.children else ""
    return last in ("break_statement", "return_statement")


def _range(node: Node, state: State) -> Symbol:
    """How many elements a range has."""
    right = node.get("right")
    name = right.text if right is not None else ""
    buffer = buffer_of(state.variables.get(name, UNKNOWN))
    if buffer is None:
        return UNKNOWN
    return NumElements(buffer) if is_tensor(buffer) else Length(buffer)


def _asked(walker: Walker, condition: Node | None, state: State) -> Symbol | None:
    if condition is None:
        return None
    inner = condition.get("value") if condition.kind == "condition_clause" else condition
    if inner is None or inner.kind == "declaration":
        return None
    return walker.evaluate(inner, state)


def _is_true(condition: Node) -> bool:
    return condition.text.strip("() ") in ("true", "1", "")


def _counter(walker: Walker, node: Node, condition: Node | None, update: Node | None, state: State) -> Loop | None:
    """Where the loop simply counts."""
    step = _step(walker, update, state)
    if step is None or condition is None:
        return None
    name, by = step
    compared = condition
    while compared.kind == "binary_expression" and compared.operator == "&&":
        left = compared.get("left")
        if left is None:
            return None
        compared = left
    left, right, sign = compared.get("left"), compared.get("right"), compared.operator
    if left is None or right is None or sign not in _FLIPPED:
        return None
    if right.text == name and left.text != name:
        left, right, sign = right, left, _FLIPPED[sign]
    start = state.variables.get(name)
    body = node.get("body")
    ahead = _ahead(left, name)
    if ahead is None or start is None or (body is not None and name in declarations.changed_in(body)):
        return None
    limit = walker.evaluate(right, state)
    if ahead:
        limit = Binary("-", limit, number(ahead))
    if by > 0 and sign in ("<", "<=", "!="):
        beyond = limit if sign != "<=" else Binary("+", limit, ONE)
        return Loop(name, node.start, start, beyond, by)
    if by < 0 and sign in (">", ">=", "!="):
        lowest = limit if sign == ">=" else Binary("+", limit, ONE)
        return Loop(name, node.start, lowest, Binary("+", start, ONE), -by)
    return None


def _ahead(node: Node, name: str) -> int | None:
    """0 for `i`, 4 for `i + 4`; None for anything else."""
    if node.text == name:
        return 0
    found = re.fullmatch(rf"{re.escape(name)}\s*\+\s*(\d{{1,9}})", node.text)
    return int(found[1]) if found else None


def _step(walker: Walker, update: Node | None, state: State) -> tuple[str, int] | None:
    if update is None:
        return None
    if update.kind == "comma_expression":
        left, right = update.get("left"), update.get("right")
        return _step(walker, left, state) or _step(walker, right, state)
    if update.kind == "update_expression":
        target = update.get("argument")
        return (target.text, 1 if update.operator == "++" else -1) if target else None
    if update.kind == "assignment_expression" and update.operator in ("+=", "-="):
        target, value = update.get("left"), update.get("right")
        by = walker.evaluate(value, state) if value is not None else ZERO
        amount = by.value if isinstance(by, Int) else UNKNOWN_STEP
        return (target.text, amount if update.operator == "+=" else -amount) if target and amount else None
    return None
