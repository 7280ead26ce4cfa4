"""Which element, variable or member an expression reads or writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import NULL, UNKNOWN, ZERO, Symbol, buffer_of, is_tensor, parts
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.custom_op.check.syntax.types import tidy

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker

_MAPS = re.compile(r"\b(?:\w*map|\w*set|vector<bool>)\b")  # writing one element may move others


def use(walker: Walker, node: Node, state: State, value: Symbol) -> None:
    """A pointer is followed."""
    if value == NULL:
        walker.note("null", node, state, on=value)
        state.possible = False
        return
    buffer = buffer_of(value) or value
    held = state.held.get(buffer)
    if held is not None and held.state == "freed":
        walker.note("touch", node, state, on=buffer)


def element(walker: Walker, node: Node, state: State, base: Symbol, given: list[Symbol], write: str = "") -> Symbol:
    """base(i, j), base[i] or *base: read, or written with an operator."""
    use(walker, node, state, base)
    kind = base[0]
    if kind == "view":
        buffer, how, type_ = base[1], base[2], base[3]
        index = tuple(given)
    elif kind == "ptr":
        buffer, how, type_ = base[1], "ptr", base[3]
        first = given[0] if given else ZERO
        index = (first if base[2] == ZERO else base[2] if first == ZERO else ("+", base[2], first),)
    elif kind in ("array", "vec"):
        buffer, how, type_, index = base, kind, base[2], tuple(given)
    elif kind == "heap":
        buffer, how, type_, index = base, "ptr", base[2], tuple(given)
    elif kind == "inputs":
        return ("listed", base[1])  # one stands for all: checks run in loops of their own
    else:
        if write:
            outlives(walker, node, state, base, given[0] if given else UNKNOWN)
            name = _variable_name(node)
            kind = state.types.get(name, "")
            if walker.parallel is not None and name in walker.shared and _MAPS.search(kind):
                walker.note("assign", node, state, on=base, name=name, detail="captured", write=True)
        return ("elem", base, given[0] if given else ZERO, "")
    walker.note("index", node, state, on=buffer, by=index, name=how, detail=write, write=bool(write))
    if write:
        state.written |= {buffer}
        if write != "=":
            state.unset -= {_variable_name(node)}
    return ("elem", buffer, index[0] if len(index) == 1 else ("tuple", *index), tidy(str(type_)))


def _variable_name(node: Node) -> str:
    inner = node.get("argument") or node.get("function")
    return inner.text if inner is not None and inner.kind == "identifier" else ""


def outlives(walker: Walker, node: Node, state: State, base: Symbol, value: Symbol = UNKNOWN) -> None:
    """What a member, a static variable or a global holds is changed."""
    root = base
    while root[0] in ("elem", "field", "part") and isinstance(root[1], tuple):
        root = root[1]
    if root[0] in ("member", "static", "global"):
        walker.note("assign", node, state, on=base, by=(value,), name=str(root[1]), detail=str(root[0]), write=True)


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
        if object_ == ("this",):
            _assign_member(walker, name, value, state, node, operator)
        else:
            outlives(walker, node, state, ("field", object_, name), value)
            _keep(state, value)
            mark_written(state, value)
            state.variables[target.text] = value
    elif kind == "subscript_expression":
        base = walker.evaluate(target.get("argument"), state)
        element(walker, target, state, base, indices(walker, target, state), operator)
        _keep(state, value)
    elif kind == "pointer_expression" and target.operator == "*":
        base = walker.evaluate(target.get("argument"), state)
        if base[0] != "addr":
            _keep(state, value)
        if base[0] == "addr":
            state.variables[base[1]] = value
        elif base[0] in ("view", "ptr", "array", "heap", "null"):
            element(walker, target, state, base, [ZERO], operator)
        else:
            mark_written(state, base)
    elif kind == "call_expression":
        walker.call(target, state, write=operator)
    else:
        walker.evaluate(target, state)


def _assign_name(walker: Walker, target: Node, value: Symbol, state: State, node: Node, operator: str) -> None:
    name = target.text
    if name in state.variables:
        old = state.variables[name]
        if old[0] == "static":
            walker.note("assign", node, state, on=old, by=(value,), name=name, detail="static", write=True)
            _keep(state, value)
            return
        if name in state.stale and "&" in state.types.get(name, ""):
            walker.note("touch", node, state, on=state.refers.get(name, UNKNOWN), name=name)
        if old[0] == "view" and "*" not in state.types.get(name, ""):  # all elements
            mark_written(state, old)
            return
        if operator != "=" and name in state.unset:
            walker.note("unset", target, state, name=name)
        if walker.parallel is not None and name in walker.shared:
            walker.note("assign", node, state, on=("var", name), by=(value,), name=name, detail="captured", write=True)
        if is_tensor(old) and "Tensor&" in state.types.get(name, "").replace(" ", ""):
            mark_written(state, old)
        state.variables[name] = value
        state.unset -= {name}
        if operator == "=":
            state.stale -= {name}
    elif walker.owner is not None and name in walker.owner.members:
        _assign_member(walker, name, value, state, node, operator)
    elif name in walker.unit.globals:
        walker.note("assign", node, state, on=("global", name), by=(value,), name=name, detail="global", write=True)
        _keep(state, value)
    else:
        state.variables[name] = value


def _assign_member(walker: Walker, name: str, value: Symbol, state: State, node: Node, operator: str) -> None:
    member = walker.member(name)
    walker.note("assign", node, state, on=member, by=(value,), name=member[1], detail="member", write=True)
    _keep(state, value)
    state.members[name] = value if operator == "=" else member


def indices(walker: Walker, node: Node, state: State) -> list[Symbol]:
    listed = node.get("indices") or node.get("index")
    nodes = listed.children if listed is not None and listed.kind == "subscript_argument_list" else [listed]
    return [walker.evaluate(each, state) for each in nodes]


def _keep(state: State, value: Symbol) -> None:
    """Memory that was stored somewhere is somebody else's to give back."""
    held = state.held.get(value)
    if held is not None and held.state == "live":
        state.held[value] = held._replace(state="escaped")


def mark_written(state: State, value: Symbol) -> None:
    views = (part for part in parts(value) if part[0] in ("view", "ptr") or part == value)
    state.written |= {buffer for view in views if (buffer := buffer_of(view))}
