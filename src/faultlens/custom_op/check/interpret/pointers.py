"""What `*p`, `&x` and a pointer that is moved stand for."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import (
    AddressOf,
    AddressOfName,
    Array,
    Element,
    Heap,
    Input,
    Pointer,
    buffer_of,
    is_tensor,
)
from faultlens.custom_op.check.interpret.places import element, use
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Binary, Negative, Null, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node


def pointer_expression(walker: Walker, node: Node, state: State) -> Symbol:
    target = node.get("argument")
    if target is None:
        return UNKNOWN
    if node.operator == "*":
        value = walker.evaluate(target, state)
        if isinstance(value, (Pointer, Array, Heap, Null)):
            return element(walker, node, state, value, [ZERO])
        use(walker, node, state, value)
        return state.variables.get(value.name, UNKNOWN) if isinstance(value, AddressOfName) else value
    return _address(walker, target, state)


def _address(walker: Walker, target: Node, state: State) -> Symbol:
    """&x: nothing is read."""
    if target.kind == "identifier":
        state.uninitialized -= {target.text}
        value = state.variables.get(target.text)
        if isinstance(value, Input) and "*" not in state.types.get(target.text, ""):
            return value
        if value is not None:
            return AddressOfName(target.text)
        if walker.owner is not None and target.text in walker.owner.members:
            return AddressOfName(f"this.{target.text}")
        return AddressOfName(target.text)
    events = len(walker.events)
    value = walker.evaluate(target, state)
    if isinstance(value, Element):
        del walker.events[events:]  # only its address is taken
        return Pointer(value.buffer, value.index, value.type) if buffer_of(value) else AddressOf(value)
    return value if is_tensor(value) else AddressOf(value)


def moved(left: Symbol, right: Symbol, sign: str) -> Symbol:
    """A pointer and a distance."""
    pointer, distance = (left, right) if isinstance(left, (Pointer, Heap, Array)) else (right, left)
    if isinstance(distance, (Pointer, Heap, Array)):
        return Binary(sign, left, right)
    step: Symbol = distance if sign == "+" else Negative(distance)
    match pointer:
        case Pointer(buffer, offset, type_):
            return Pointer(buffer, step if offset == ZERO else Binary("+", offset, step), type_)
        case Heap() | Array():
            return Pointer(pointer, step, pointer.type)
    return Binary(sign, left, right)
