"""Which element, variable or member an expression reads or writes."""

from __future__ import annotations

import re

from faultlens.custom_op.check.interpret.buffer_symbols import (
    AddressOfName,
    Array,
    Element,
    Heap,
    Indices,
    Listed,
    Memory,
    Pointer,
    Vector,
    View,
    buffer_of,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import Field, InputList, Item
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import (
    NULL,
    THIS,
    UNKNOWN,
    ZERO,
    Binary,
    Global,
    Null,
    Persistent,
    Static,
    Symbol,
    Variable,
)
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.custom_op.check.syntax.types import tidy

_MAPS = re.compile(r"\b(?:\w*map|\w*set|vector<bool>)\b")  # writing one element may move others


def use(walker: Walker, node: Node, state: State, value: Symbol) -> None:
    """A pointer is followed."""
    if value == NULL:
        walker.note("null", node, state, on=value)
        state.feasible = False
        return
    buffer = buffer_of(value) or value
    held = state.held.get(buffer)
    if held is not None and held.state == "freed":
        walker.note("touch", node, state, on=buffer)


def element(walker: Walker, node: Node, state: State, base: Symbol, given: list[Symbol], write: str = "") -> Symbol:
    """base(i, j), base[i] or *base: read, or written with an operator."""
    use(walker, node, state, base)
    index, buffer = tuple(given), base
    match base:
        case View(buffer, how, type_):
            pass
        case Pointer(buffer, offset, type_):
            how, first = "ptr", given[0] if given else ZERO
            index = (first if offset == ZERO else offset if first == ZERO else Binary("+", offset, first),)
        case Memory(_, type_):
            how = {Array: "array", Vector: "vec"}.get(type(base), "ptr")
        case InputList(name):
            return Listed(name)  # one stands for all: checks run in loops of their own
        case _:
            return _unknown_element(walker, node, state, base, given, write)
    walker.note("index", node, state, on=buffer, by=index, name=how, detail=write, write=bool(write))
    if write:
        state.written |= {buffer}
        if write != "=":
            state.uninitialized -= {_variable_name(node)}
    return Element(buffer, index[0] if len(index) == 1 else Indices(index), tidy(type_))


def _unknown_element(walker: Walker, node: Node, state: State, base: Symbol, given: list[Symbol], write: str) -> Symbol:
    if write:
        outlives(walker, node, state, base, given[0] if given else UNKNOWN)
        name = _variable_name(node)
        if walker.parallel is not None and name in walker.shared and _MAPS.search(state.types.get(name, "")):
            walker.note("assign", node, state, on=base, name=name, detail="captured", write=True)
    return Element(base, given[0] if given else ZERO, "")


def _variable_name(node: Node) -> str:
    inner = node.get("argument") or node.get("function")
    return inner.text if inner is not None and inner.kind == "identifier" else ""


def container_of(symbol: Symbol) -> Symbol:
    """The outermost object whose element or field it is."""
    while True:
        match symbol:
            case Element(outer) | Field(outer) | Item(outer):
                symbol = outer
            case _:
                return symbol


def outlives(walker: Walker, node: Node, state: State, base: Symbol, value: Symbol = UNKNOWN) -> None:
    """What a member, a static variable or a global holds is changed."""
    root = container_of(base)
    if isinstance(root, Persistent):
        walker.note("assign", node, state, on=base, by=(value,), name=root.name, detail=root.storage, write=True)


def assign(walker: Walker, target: Node, value: Symbol, state: State, node: Node, operator: str = "=") -> None:
    """target = value."""
    kind = target.kind
    if kind == "parenthesized_expression" and target.children:
        assign(walker, target.children[0], value, state, node, operator)
    elif kind == "identifier":
        _assign_name(walker, target, value, state, node, operator)
    elif kind == "field_expression":
        object_ = walker.evaluate(target.get("argument"), state)
        if target.operator == "->":
            use(walker, target, state, object_)
        name = name_of(target.get("field"))
        if object_ == THIS:
            _assign_member(walker, name, value, state, node, operator)
        else:
            outlives(walker, node, state, Field(object_, name), value)
            state.keep(value)
            mark_written(state, value)
            state.variables[target.text] = value
    elif kind == "subscript_expression":
        base = walker.evaluate(target.get("argument"), state)
        element(walker, target, state, base, indices(walker, target, state), operator)
        state.keep(value)
    elif kind == "pointer_expression" and target.operator == "*":
        base = walker.evaluate(target.get("argument"), state)
        if not isinstance(base, AddressOfName):
            state.keep(value)
        if isinstance(base, AddressOfName):
            state.variables[base.name] = value
        elif isinstance(base, (View, Pointer, Array, Heap, Null)):
            element(walker, target, state, base, [ZERO], operator)
        else:
            mark_written(state, base)
    elif kind == "call_expression":
        walker.assign_call(target, state, operator)
    else:
        walker.evaluate(target, state)


def _assign_name(walker: Walker, target: Node, value: Symbol, state: State, node: Node, operator: str) -> None:
    name = target.text
    if name in state.variables:
        old = state.variables[name]
        if isinstance(old, Static):
            walker.note("assign", node, state, on=old, by=(value,), name=name, detail="static", write=True)
            state.keep(value)
            return
        if name in state.invalidated and "&" in state.types.get(name, ""):
            walker.note("touch", node, state, on=state.references.get(name, UNKNOWN), name=name)
        if isinstance(old, View) and "*" not in state.types.get(name, ""):  # all elements
            mark_written(state, old)
            return
        if operator != "=" and name in state.uninitialized:
            walker.note("unset", target, state, name=name)
        if walker.parallel is not None and name in walker.shared:
            walker.note("assign", node, state, on=Variable(name), by=(value,), name=name, detail="captured", write=True)
        if is_tensor(old) and "Tensor&" in state.types.get(name, "").replace(" ", ""):
            mark_written(state, old)
        state.variables[name] = value
        state.uninitialized -= {name}
        if operator == "=":
            state.invalidated -= {name}
    elif walker.owner is not None and name in walker.owner.members:
        _assign_member(walker, name, value, state, node, operator)
    elif name in walker.program.globals:
        walker.note("assign", node, state, on=Global(name), by=(value,), name=name, detail="global", write=True)
        state.keep(value)
    else:
        state.variables[name] = value


def _assign_member(walker: Walker, name: str, value: Symbol, state: State, node: Node, operator: str) -> None:
    member = walker.member(name)
    walker.note("assign", node, state, on=member, by=(value,), name=member.name, detail="member", write=True)
    state.keep(value)
    state.members[name] = value if operator == "=" else member


def indices(walker: Walker, node: Node, state: State) -> list[Symbol]:
    listed = node.get("indices") or node.get("index")
    nodes = listed.children if listed is not None and listed.kind == "subscript_argument_list" else [listed]
    return [walker.evaluate(each, state) for each in nodes]


def mark_written(state: State, value: Symbol) -> None:
    views = (part for part in parts(value) if isinstance(part, (View, Pointer)) or part == value)
    state.written |= {buffer for view in views if (buffer := buffer_of(view))}
