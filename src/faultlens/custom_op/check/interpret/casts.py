"""What a value stands for in another type."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Array, Heap, Pointer, Retyped, is_tensor
from faultlens.custom_op.check.interpret.composition import data_in, parts
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Float, Symbol, Unsigned, is_binary
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.syntax.types import is_integer, is_small_integer, is_unsigned, size_of, tidy


def cast_expression(walker: Walker, node: Node, state: State) -> Symbol:
    kind, value = node.get("type"), walker.evaluate(node.get("value"), state)
    return cast(walker, node, state, "cast", kind.text if kind else "", value)


def cast(walker: Walker, node: Node, state: State, how: str, kind: str, value: Symbol) -> Symbol:
    """(float*)p, static_cast<int64_t>(x)."""
    type_ = tidy(kind.replace("*", " ")) if "*" in kind else tidy(kind)
    if isinstance(value, (Pointer, Heap, Array)) and "*" in kind:
        walker.note("cast", node, state, on=value, name=how, detail=kind)
        if isinstance(value, Heap):
            return value
        known = size_of(type_), size_of(value.type)
        buffer, offset = (value.buffer, value.offset) if isinstance(value, Pointer) else (value, ZERO)
        same = known[0] == known[1] or not known[1] or type_ in ("T", "void")
        if same:
            return Pointer(buffer, offset, type_)
        return Pointer(Retyped(buffer, value), offset, type_)
    if is_tensor(value) and "const_cast" in how:
        walker.note("cast", node, state, on=value, name=how, detail=kind)
    if isinstance(value, Float) and is_integer(type_):
        return UNKNOWN
    narrowed(walker, node, state, value, type_)
    return as_type(value, type_)


def narrowed(walker: Walker, node: Node, state: State, value: Symbol, kind: str) -> None:
    """A product goes into a variable, a parameter or a cast of a type that may be too small for it."""
    if is_small_integer(kind) and any(is_binary(part, "*") for part in parts(value)):
        walker.note("narrow", node, state, by=(value,), detail=tidy(kind))


def as_type(value: Symbol, kind: str) -> Symbol:
    """Data in an unsigned number is not negative; it is large instead."""
    return Unsigned(value) if is_unsigned(kind) and any(data_in(value)) else value
