"""What the expressions of C++ stand for, and what they do on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.casts import cast_expression, narrowed
from faultlens.custom_op.check.interpret.places import assign, element, indices, mark_written, use
from faultlens.custom_op.check.interpret.pointers import moved, pointer_expression
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import NULL, UNKNOWN, Symbol, constant, number
from faultlens.custom_op.check.syntax import inferred
from faultlens.custom_op.check.syntax.syntax import Node, name_of, string_of

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker

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
        return moved(left, right, sign)
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
    new = moved(old, number(1), sign) if old[0] == "ptr" else (sign, old, number(1))
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
        value = moved(old, value, operator) if old[0] == "ptr" and operator in "+-" else (operator, old, value)
    elif sign in ("/=", "%="):  # out(i) /= d(i)
        kind = inferred.type_of(walker, left, state) if sign == "/=" else "int64"
        walker.note("divide", node, state, by=(value,), name=sign[0], detail=kind)
    narrowed(walker, node, state, value, inferred.type_of(walker, left, state))
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


def _subscript(walker: Walker, node: Node, state: State) -> Symbol:
    base = evaluate(walker, node.get("argument"), state)
    return element(walker, node, state, base, indices(walker, node, state))


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


def _assembler(walker: Walker, node: Node, state: State) -> Symbol:
    """Its operands, in the order of their numbers; it may write wherever they point."""
    kinds = ("gnu_asm_output_operand", "gnu_asm_input_operand")
    values = [evaluate(walker, each.get("value"), state) for kind in kinds for each in node.find(kind)]
    for value in values:
        mark_written(state, value)
    walker.note("call", node, state, name="asm", by=values)
    return UNKNOWN


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
    "cast_expression": cast_expression,
    "pointer_expression": pointer_expression,
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
    "gnu_asm_expression": _assembler,
}
