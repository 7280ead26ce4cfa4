"""What loops do to what is known: the counter runs between two limits, and what the body changes is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret import declarations
from faultlens.custom_op.check.interpret.expressions import evaluate
from faultlens.custom_op.check.interpret.state import Fact, State
from faultlens.custom_op.check.interpret.symbols import (
    UNKNOWN,
    ZERO,
    Symbol,
    buffer_of,
    constant,
    is_tensor,
    number,
    parts,
)
from faultlens.custom_op.check.syntax.functions import declared_type
from faultlens.custom_op.check.syntax.syntax import Node, name_of

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker

UNKNOWN_STEP = 1_000_003  # no width of a vector divides it
MOST_INPUTS = 64
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def counted(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """for (begin; condition; step) body."""
    initializer, condition, update = node.get("initializer"), node.get("condition"), node.get("update")
    if initializer is not None:
        if initializer.kind != "declaration":
            for state in states:
                evaluate(walker, initializer, state)
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
        for each, values in walker.fork(state, lambda one: evaluate(walker, right, one) if right else UNKNOWN):
            buffer = buffer_of(values)
            vary: Symbol = ("vary", name, node.start)
            each.variables[name] = ("elem", buffer, vary, "") if buffer else ("part", values, vary)
            each.types[name] = declared_type(node, declarator) if declarator else ""
            begins.append(each)
    return _loop(walker, node, begins, None, None)


def _loop(walker: Walker, node: Node, states: list[State], condition: Node | None, update: Node | None) -> list[State]:
    body = node.get("body")
    frame = walker.frames[-1]
    changed = declarations.changed_in(node)
    asked = condition if node.kind != "do_statement" else None  # that asks only behind the body
    ends: list[State] = []
    walker.loops += 1
    frame.breaks.append([])
    frame.continues.append([])
    try:
        for state in states:
            counter = _counter(walker, node, condition, update, state)
            for name in changed - ({counter[1]} if counter else set()):
                if name in state.variables:
                    state.variables[name] = _varied(state.variables[name], name, node.start)
                if walker.owner is not None and name in walker.owner.members and name not in state.variables:
                    state.members[name] = ("member", name)
            if counter:
                state.variables[counter[1]] = counter
                if _never_runs(counter):
                    ends.append(state)
                    continue
            grown = _grown_in(node, state)
            state.stale |= {name for name, owner in state.refers.items() if owner in grown and name not in changed}
            state.shapes.update({each: ("size", (*each, node.start)) for each in grown if each[0] == "vec"})
            for inside, held in walker.fork(state, lambda each: _asked(walker, asked, each)):
                if held is not None and not counter:
                    inside.assume(held, True, loop=True)
                elif counter:
                    inside.assume(("runs", counter, counter[4]), True, loop=True)
                    if held is not None and held[0] == "&&":  # i < n && more
                        inside.assume(held, True, loop=True)
                if node.kind == "for_range_loop":
                    inside.assume(("runs", ("vary", "", node.start), _range(node, inside)), True, loop=True)
                if inside.possible and body is not None:
                    ends += walker.statement(body, [inside])
            if node.kind == "do_statement":
                ends = [
                    end for each in ends for end, _ in walker.fork(each, lambda one: _asked(walker, condition, one))
                ]
            if update is not None:
                for end in ends[:1]:
                    if not counter:
                        walker.fork(end, lambda each: evaluate(walker, update, each))
        ends += frame.continues[-1]
    finally:
        walker.loops -= 1
        broken = frame.breaks.pop()
        frame.continues.pop()
    endless = (condition is None and node.kind != "for_range_loop") or (condition is not None and _is_true(condition))
    after = broken if endless else ends + broken
    after = after or (
        [] if endless and node.kind != "for_range_loop" else [state for state in states if state.possible]
    )
    for end in after:
        end.facts = tuple(fact for fact in end.facts if not fact.loop)
        end.facts += tuple(_for_each(walker, end))
        for name in changed:
            if name in end.variables and end.variables[name][0] == "loop":
                end.variables[name] = ("vary", name, node.end)
    return after


def _for_each(walker: Walker, end: State) -> Iterator[Fact]:
    """What was checked of ctx->input(i) in a loop holds for each of the inputs that it ran over."""
    for fact in end.facts:
        for part in parts(fact.condition):
            if part[0] == "input" and isinstance(part[1], tuple) and part[1][0] == "loop":
                first, beyond = constant(part[1][3]), _beyond(walker, part[1][4])
                for number in range(first or 0, min(beyond, MOST_INPUTS)):
                    each = Fact(_with(fact.condition, part, ("input", number)), fact.holds)
                    if each not in end.facts:
                        yield each


def _beyond(walker: Walker, limit: Symbol) -> int:
    if limit[:2] == ("call", "num_inputs") and walker.op is not None:
        return len(walker.op.inputs)
    return constant(limit) or 0


def _with(symbol: Symbol, old: Symbol, new: Symbol) -> Symbol:
    if symbol == old:
        return new
    return tuple(_with(part, old, new) if isinstance(part, tuple) and part else part for part in symbol)


def _never_runs(counter: Symbol) -> bool:
    first, beyond = constant(counter[3]), constant(counter[4])
    return first is not None and beyond is not None and beyond <= first


def _varied(old: Symbol, name: str, place: int) -> Symbol:
    """A variable that the loop changes; a pointer that is moved still points into its buffer."""
    vary: Symbol = ("vary", name, place)
    if old[0] == "ptr":
        return ("ptr", old[1], vary, old[3])
    return old if old[0] in ("view", "static") else ("ptr", old, vary, old[2]) if old[0] in ("array", "heap") else vary


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
    return ("numel", buffer) if is_tensor(buffer) else ("size", buffer)


def _asked(walker: Walker, condition: Node | None, state: State) -> Symbol | None:
    if condition is None:
        return None
    inner = condition.get("value") if condition.kind == "condition_clause" else condition
    if inner is None or inner.kind == "declaration":
        return None
    return evaluate(walker, inner, state)


def _is_true(condition: Node) -> bool:
    return condition.text.strip("() ") in ("true", "1", "")


def _counter(walker: Walker, node: Node, condition: Node | None, update: Node | None, state: State) -> Symbol | None:
    """("loop", name, place, lowest, first beyond, step) where the loop simply counts."""
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
    limit = evaluate(walker, right, state)
    if ahead:
        limit = ("-", limit, number(ahead))
    if by > 0 and sign in ("<", "<=", "!="):
        beyond: Symbol = limit if sign != "<=" else ("+", limit, number(1))
        return ("loop", name, node.start, start, beyond, by)
    if by < 0 and sign in (">", ">=", "!="):
        lowest: Symbol = limit if sign == ">=" else ("+", limit, number(1))
        return ("loop", name, node.start, lowest, ("+", start, number(1)), -by)
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
        by = evaluate(walker, value, state) if value is not None else ZERO
        amount = by[1] if by[0] == "int" else UNKNOWN_STEP
        return (target.text, amount if update.operator == "+=" else -amount) if target and amount else None
    return None
