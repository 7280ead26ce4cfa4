"""What the expressions of C++ stand for, and what they do on the way."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from faultlens.oplab.reading import inferred
from faultlens.oplab.reading.state import State
from faultlens.oplab.reading.symbols import (
    NULL,
    UNKNOWN,
    ZERO,
    Symbol,
    buffer_of,
    constant,
    data_in,
    is_tensor,
    number,
    parts,
)
from faultlens.oplab.reading.syntax import Node, name_of, string_of
from faultlens.oplab.reading.types import is_integer, is_unsigned, size_of, tidy

if TYPE_CHECKING:
    from faultlens.oplab.reading.walk import Walker

_MAPS = re.compile(r"\b(?:\w*map|\w*set|vector<bool>)\b")  # writing one element may move others
Evaluator = Callable[["Walker", Node, State], Symbol]


def evaluate(walker: Walker, node: Node | None, state: State) -> Symbol:
    if node is None:
        return UNKNOWN
    handler = _EXPRESSIONS.get(node.kind)
    if handler is not None:
        return handler(walker, node, state)
    for child in node.children:
        evaluate(walker, child, state)
    return UNKNOWN


# --------------------------------------------------------------------------------------------- places


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
        object_ = evaluate(walker, target.get("argument"), state)
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
        base = evaluate(walker, target.get("argument"), state)
        element(walker, target, state, base, _indices(walker, target, state), operator)
        _keep(state, value)
    elif kind == "pointer_expression" and target.operator == "*":
        base = evaluate(walker, target.get("argument"), state)
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
        evaluate(walker, target, state)


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


def _keep(state: State, value: Symbol) -> None:
    """Memory that was stored somewhere is somebody else's to give back."""
    held = state.held.get(value)
    if held is not None and held.state == "live":
        state.held[value] = held._replace(state="escaped")


def mark_written(state: State, value: Symbol) -> None:
    views = (part for part in parts(value) if part[0] in ("view", "ptr") or part == value)
    state.written |= {buffer for view in views if (buffer := buffer_of(view))}


# ---------------------------------------------------------------------------------------- expressions


def _number(_: Walker, node: Node, __: State) -> Symbol:
    text = node.text.replace("'", "").lower().rstrip("ul")
    try:
        return number(int(text, 0) if not (text.startswith("0") and text.isdigit()) else int(text, 8))
    except ValueError:
        return ("float", text)


def _identifier(walker: Walker, node: Node, state: State) -> Symbol:
    name = node.text
    if name in state.variables:
        if name in state.stale:
            walker.note("touch", node, state, on=state.refers.get(name, UNKNOWN), name=name)
            state.stale -= {name}
        if name in state.unset:
            if state.variables[name][0] != "array":
                walker.note("unset", node, state, name=name)
            state.unset -= {name}
        return state.variables[name]
    if walker.owner is not None and name in walker.owner.members:
        return state.members.get(name, walker.member(name))
    if name in walker.unit.constants:
        return walker.unit.constants[name]
    return ("global", name) if name in walker.unit.globals else ("name", name)


def _qualified(walker: Walker, node: Node, _: State) -> Symbol:
    name = name_of(node)
    known = walker.unit.constants.get(name)
    return known if known is not None else ("name", node.text)


def _binary(walker: Walker, node: Node, state: State) -> Symbol:
    left_node, right_node, sign = node.get("left"), node.get("right"), node.operator
    left = evaluate(walker, left_node, state)
    if sign in ("&&", "||"):
        facts, possible = state.facts, state.possible
        state.assume(left, sign == "&&")
        if not state.possible:  # the right side is never asked
            state.facts, state.possible = facts, possible
            return ("bool", sign == "||")
        right = evaluate(walker, right_node, state)
        state.facts, state.possible = facts, possible
        return (sign, left, right)
    right = evaluate(walker, right_node, state)
    if sign in ("/", "%"):
        kind = inferred.type_of(walker, node, state) if sign == "/" else "int64"
        walker.note("divide", node, state, by=(right,), on=left, name=sign, detail=kind)
    if sign == "*" and left_node is not None and right_node is not None:
        walker.note("multiply", node, state, on=left, by=(left, right), detail=inferred.type_of(walker, node, state))
    if sign in ("+", "-") and (left[0] in ("ptr", "heap", "array") or right[0] == "ptr"):
        return _moved(left, right, sign)
    made: Symbol = (sign, left, right)
    if sign in ("+", "-", "*", "/", "<<", "%"):
        folded = _folded(sign, left, right)
        if folded is not None:
            return number(folded)
    return made


def _folded(sign: str, left: Symbol, right: Symbol) -> int | None:
    a, b = constant(left), constant(right)
    if a is None or b is None or left[0] == "float" or right[0] == "float":
        return None
    if sign == "<<":
        return a << b if 0 <= b < 64 else None
    if sign in ("/", "%"):
        return (a // b if sign == "/" else a % b) if b > 0 and a >= 0 else None
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def _moved(left: Symbol, right: Symbol, sign: str) -> Symbol:
    """A pointer and a distance."""
    pointer, distance = (left, right) if left[0] in ("ptr", "heap", "array") else (right, left)
    if distance[0] in ("ptr", "heap", "array"):
        return (sign, left, right)
    step: Symbol = distance if sign == "+" else ("neg", distance)
    if pointer[0] == "ptr":
        return ("ptr", pointer[1], step if pointer[2] == ZERO else ("+", pointer[2], step), pointer[3])
    return ("ptr", pointer, step, pointer[2])


def _unary(walker: Walker, node: Node, state: State) -> Symbol:
    value = evaluate(walker, node.get("argument"), state)
    if node.operator in ("!", "not"):
        return ("bool", not value[1]) if value[0] == "bool" else ("!", value)
    if node.operator == "-":
        return number(-value[1]) if value[0] == "int" else ("neg", value)
    return value if node.operator == "+" else ("call", node.operator, value)


def _update(walker: Walker, node: Node, state: State) -> Symbol:
    target = node.get("argument")
    if target is None:
        return UNKNOWN
    old = evaluate(walker, target, state) if target.kind == "identifier" else UNKNOWN
    sign = "+" if node.operator == "++" else "-"
    new = _moved(old, number(1), sign) if old[0] == "ptr" else (sign, old, number(1))
    assign(walker, target, new, state, node, f"{sign}=")
    behind = node.children and node.source.data[node.start : node.start + 1] not in (b"+", b"-")
    return old if behind else new


def _assignment(walker: Walker, node: Node, state: State) -> Symbol:
    left, right, sign = node.get("left"), node.get("right"), node.operator or "="
    value = evaluate(walker, right, state)
    if left is None:
        return value
    if sign != "=" and left.kind == "identifier":
        if left.text in state.unset:
            assign(walker, left, value, state, node, sign)
            return value
        old = evaluate(walker, left, state)
        operator = sign[:-1]
        if operator in ("/", "%"):
            kind = inferred.type_of(walker, left, state)
            walker.note("divide", node, state, by=(value,), on=old, name=operator, detail=kind)
        if operator == "+" and walker.loops:
            walker.note(
                "multiply", node, state, on=old, by=(value,), name="+=", detail=inferred.type_of(walker, left, state)
            )
        value = _moved(old, value, operator) if old[0] == "ptr" and operator in "+-" else (operator, old, value)
    elif sign in ("/=", "%="):  # out(i) /= d(i)
        kind = inferred.type_of(walker, left, state) if sign == "/=" else "int64"
        walker.note("divide", node, state, by=(value,), name=sign[0], detail=kind)
    assign(walker, left, value, state, node, sign)
    return value


def _conditional(walker: Walker, node: Node, state: State) -> Symbol:
    condition = evaluate(walker, node.get("condition"), state)
    then, other = node.get("consequence"), node.get("alternative")
    facts = state.facts
    if any(each is not None and each.text in ("nullptr", "NULL") for each in (then, other)):
        holds = walker.choose(2) == 0
        state.assume(condition, holds)
        return evaluate(walker, then if holds else other, state) if state.possible else UNKNOWN
    values = []
    for branch, holds in ((then, True), (other, False)):
        state.assume(condition, holds)
        values.append(evaluate(walker, branch, state) if state.possible else None)
        state.facts, state.possible = facts, True
    if values[0] is None or values[1] is None:
        return values[0] or values[1] or UNKNOWN
    return values[0] if values[0] == values[1] else ("?:", condition, *values)


def _cast(walker: Walker, node: Node, state: State) -> Symbol:
    kind, value = node.get("type"), evaluate(walker, node.get("value"), state)
    return cast(walker, node, state, "cast", kind.text if kind else "", value)


def cast(walker: Walker, node: Node, state: State, how: str, kind: str, value: Symbol) -> Symbol:
    """(float*)p, static_cast<int64_t>(x)."""
    type_ = tidy(kind.replace("*", " ")) if "*" in kind else tidy(kind)
    if value[0] in ("ptr", "heap", "array") and "*" in kind:
        walker.note("cast", node, state, on=value, name=how, detail=kind)
        if value[0] == "heap":
            return value
        known = size_of(type_), size_of(str(value[3] if value[0] == "ptr" else value[2]))
        buffer, offset = (value[1], value[2]) if value[0] == "ptr" else (value, ZERO)
        same = known[0] == known[1] or not known[1] or type_ in ("T", "void")
        if same:
            return ("ptr", buffer, offset, type_)
        return ("ptr", ("retyped", buffer, value), offset, type_)
    if is_tensor(value) and "const_cast" in how:
        walker.note("cast", node, state, on=value, name=how, detail=kind)
    if value[0] == "float" and is_integer(type_):
        return UNKNOWN
    return as_type(value, type_)


def as_type(value: Symbol, kind: str) -> Symbol:
    """Data in an unsigned number is not negative; it is large instead."""
    return ("unsigned", value) if is_unsigned(kind) and any(data_in(value)) else value


def _pointer(walker: Walker, node: Node, state: State) -> Symbol:
    target = node.get("argument")
    if target is None:
        return UNKNOWN
    if node.operator == "*":
        value = evaluate(walker, target, state)
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
    value = evaluate(walker, target, state)
    if value[0] == "elem":
        del walker.events[events:]  # only its address is taken
        return ("ptr", value[1], value[2], value[3]) if buffer_of(value) else ("addr-of", value)
    return value if is_tensor(value) else ("addr-of", value)


def _subscript(walker: Walker, node: Node, state: State) -> Symbol:
    base = evaluate(walker, node.get("argument"), state)
    return element(walker, node, state, base, _indices(walker, node, state))


def _indices(walker: Walker, node: Node, state: State) -> list[Symbol]:
    listed = node.get("indices") or node.get("index")
    nodes = listed.children if listed is not None and listed.kind == "subscript_argument_list" else [listed]
    return [evaluate(walker, each, state) for each in nodes]


def _field(walker: Walker, node: Node, state: State) -> Symbol:
    known = state.variables.get(node.text)
    if known is not None:
        return known
    object_ = evaluate(walker, node.get("argument"), state)
    name = name_of(node.get("field"))
    if object_ == ("this",):
        return state.members.get(name, walker.member(name))
    if node.operator == "->":
        use(walker, node, state, object_)
    if object_[0] == "pair" and name in ("first", "second"):
        found: Symbol = object_[1 if name == "first" else 2]
        return found
    if object_[0] == "call":
        walker.note("call", node, state, on=object_, name="->" + name)
    return ("field", object_, name)


def _inner(walker: Walker, node: Node, state: State) -> Symbol:
    return evaluate(walker, node.children[-1], state) if node.children else UNKNOWN


def _comma(walker: Walker, node: Node, state: State) -> Symbol:
    evaluate(walker, node.get("left"), state)
    return evaluate(walker, node.get("right"), state)


def _braces(walker: Walker, node: Node, state: State) -> Symbol:
    return ("braces", *(evaluate(walker, child, state) for child in node.children if child.kind != "comment"))


def _literal(walker: Walker, node: Node, state: State) -> Symbol:
    """Type{…}."""
    kind, value = node.get("type"), node.get("value")
    values = [evaluate(walker, each, state) for each in value.children] if value else []
    return walker.made(kind.text if kind else "", values, node, state, listed=True)


def _throw(walker: Walker, node: Node, state: State) -> Symbol:
    walker.note("throw", node, state, name="throw")
    state.possible = False
    return UNKNOWN


_EXPRESSIONS: dict[str, Evaluator] = {
    "number_literal": _number,
    "string_literal": lambda _, node, __: ("str", string_of(node) or ""),
    "raw_string_literal": lambda _, node, __: ("str", string_of(node) or ""),
    "concatenated_string": lambda _, node, __: ("str", string_of(node) or ""),
    "char_literal": lambda _, node, __: ("char", node.text),
    "true": lambda _, __, ___: ("bool", True),
    "false": lambda _, __, ___: ("bool", False),
    "null": lambda _, __, ___: NULL,
    "this": lambda _, __, ___: ("this",),
    "identifier": _identifier,
    "qualified_identifier": _qualified,
    "template_function": lambda _, node, __: ("name", node.text),
    "sizeof_expression": lambda _, node, __: ("sizeof", node.text),
    "parenthesized_expression": _inner,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "update_expression": _update,
    "assignment_expression": _assignment,
    "conditional_expression": _conditional,
    "cast_expression": _cast,
    "pointer_expression": _pointer,
    "subscript_expression": _subscript,
    "field_expression": _field,
    "comma_expression": _comma,
    "initializer_list": _braces,
    "compound_literal_expression": _literal,
    "call_expression": lambda walker, node, state: walker.call(node, state),
    "new_expression": lambda walker, node, state: walker.new(node, state),
    "delete_expression": lambda walker, node, state: walker.delete(node, state),
    "lambda_expression": lambda walker, node, _: walker.function_value(node),
    "throw_statement": _throw,
}


def _variable_name(node: Node) -> str:
    inner = node.get("argument") or node.get("function")
    return inner.text if inner is not None and inner.kind == "identifier" else ""
