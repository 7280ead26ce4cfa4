"""What `*p`, `&x` and a pointer that is moved stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.places import element, use
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Symbol, buffer_of, is_tensor
from faultlens.custom_op.check.syntax.syntax import Node

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker


def pointer_expression(walker: Walker, node: Node, state: State) -> Symbol:
    target = node.get("argument")
    if target is None:
        return UNKNOWN
    if node.operator == "*":
        value = walker.evaluate(target, state)
        if value[0] in ("ptr", "array", "heap", "null"):
            return element(walker, node, state, value, [ZERO])
        use(walker, node, state, value)
        return state.variables.get(value[1], UNKNOWN) if value[0] == "addr" else value
    return _address(walker, target, state)


def _address(walker: Walker, target: Node, state: State) -> Symbol:
    """&x: nothing is read."""
    if target.kind == "identifier":
        state.unset -= {target.text}
        value = state.variables.get(target.text)
        if value is not None and (
            is_tensor(value) and "*" not in state.types.get(target.text, "") and value[0] == "input"
        ):
            return value
        if value is not None:
            return ("addr", target.text)
        if walker.owner is not None and target.text in walker.owner.members:
            return ("addr", f"this.{target.text}")
        return ("addr", target.text)
    events = len(walker.events)
    value = walker.evaluate(target, state)
    if value[0] == "elem":
        del walker.events[events:]  # only its address is taken
        return ("ptr", value[1], value[2], value[3]) if buffer_of(value) else ("addr-of", value)
    return value if is_tensor(value) else ("addr-of", value)


def moved(left: Symbol, right: Symbol, sign: str) -> Symbol:
    """A pointer and a distance."""
    pointer, distance = (left, right) if left[0] in ("ptr", "heap", "array") else (right, left)
    if distance[0] in ("ptr", "heap", "array"):
        return (sign, left, right)
    step: Symbol = distance if sign == "+" else ("neg", distance)
    if pointer[0] == "ptr":
        return ("ptr", pointer[1], step if pointer[2] == ZERO else ("+", pointer[2], step), pointer[3])
    return ("ptr", pointer, step, pointer[2])
