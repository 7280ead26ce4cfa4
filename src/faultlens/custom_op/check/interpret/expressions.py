"""What the expressions of C++ stand for, and what they do on the way."""

from __future__ import annotations

from faultlens.custom_op.check.interpret import inferred
from faultlens.custom_op.check.interpret.buffer_symbols import Array, Heap, Pointer
from faultlens.custom_op.check.interpret.call_symbols import Braces, Field, Pair, Result
from faultlens.custom_op.check.interpret.casts import cast_expression, narrowed
from faultlens.custom_op.check.interpret.declarations import made
from faultlens.custom_op.check.interpret.lambdas import lambda_expression
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.memory_calls import delete_expression, new_expression
from faultlens.custom_op.check.interpret.places import assign, element, indices, mark_written, use
from faultlens.custom_op.check.interpret.pointers import moved, pointer_expression
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import (
    FALSE,
    NULL,
    ONE,
    THIS,
    TRUE,
    UNKNOWN,
    Binary,
    Bool,
    Char,
    Conditional,
    Float,
    Global,
    Int,
    Name,
    Negative,
    Not,
    SizeOf,
    String,
    Symbol,
    number,
)
from faultlens.custom_op.check.interpret.walk import ExpressionHandler, Walker
from faultlens.custom_op.check.syntax.syntax import Node, name_of, string_of


def _number(_: Walker, node: Node, __: State) -> Symbol:
    text = node.text.replace("'", "").lower().rstrip("ul")
    try:
        return number(int(text, 0) if not (text.startswith("0") and text.isdigit()) else int(text, 8))
    except ValueError:
        return Float(text)


def _identifier(walker: Walker, node: Node, state: State) -> Symbol:
    name = node.text
    if name in state.variables:
        if name in state.invalidated:
            walker.note("touch", node, state, on=state.references.get(name, UNKNOWN), name=name)
            state.invalidated -= {name}
        if name in state.uninitialized:
            if not isinstance(state.variables[name], Array):
                walker.note("unset", node, state, name=name)
            state.uninitialized -= {name}
        return state.variables[name]
    if walker.owner is not None and name in walker.owner.members:
        return state.members.get(name, walker.member(name))
    if (known := walker.constant(name)) is not None:
        return known
    return Global(name) if name in walker.program.globals else Name(name)


def _qualified(walker: Walker, node: Node, _: State) -> Symbol:
    name = name_of(node)
    known = walker.constant(name)
    return known if known is not None else Name(node.text)


def _binary(walker: Walker, node: Node, state: State) -> Symbol:
    left_node, right_node, sign = node.get("left"), node.get("right"), node.operator
    left = walker.evaluate(left_node, state)
    if sign in ("&&", "||"):
        facts, possible = state.facts, state.feasible
        state.assume(left, sign == "&&")
        if not state.feasible:  # the right side is never asked
            state.facts, state.feasible = facts, possible
            return Bool(sign == "||")
        right = walker.evaluate(right_node, state)
        state.facts, state.feasible = facts, possible
        return Binary(sign, left, right)
    right = walker.evaluate(right_node, state)
    if sign in ("/", "%"):
        kind = inferred.type_of(walker, node, state) if sign == "/" else "int64"
        walker.note("divide", node, state, by=(right,), on=left, name=sign, detail=kind)
    if sign == "*" and left_node is not None and right_node is not None:
        walker.note("multiply", node, state, on=left, by=(left, right), detail=inferred.type_of(walker, node, state))
    if sign in ("+", "-") and (isinstance(left, (Pointer, Heap, Array)) or isinstance(right, Pointer)):
        return moved(left, right, sign)
    if sign in ("+", "-", "*", "/", "<<", "%"):
        folded = _folded(sign, left, right)
        if folded is not None:
            return number(folded)
    return Binary(sign, left, right)


def _folded(sign: str, left: Symbol, right: Symbol) -> int | None:
    a, b = constant(left), constant(right)
    if a is None or b is None or isinstance(left, Float) or isinstance(right, Float):
        return None
    if sign == "<<":
        return a << b if 0 <= b < 64 else None
    if sign in ("/", "%"):
        return (a // b if sign == "/" else a % b) if b > 0 and a >= 0 else None
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def _unary(walker: Walker, node: Node, state: State) -> Symbol:
    value = walker.evaluate(node.get("argument"), state)
    if node.operator in ("!", "not"):
        return Bool(not value.value) if isinstance(value, Bool) else Not(value)
    if node.operator == "-":
        return number(-value.value) if isinstance(value, Int) else Negative(value)
    return value if node.operator == "+" else Result(node.operator, (value,))


def _update(walker: Walker, node: Node, state: State) -> Symbol:
    target = node.get("argument")
    if target is None:
        return UNKNOWN
    old = walker.evaluate(target, state) if target.kind == "identifier" else UNKNOWN
    sign = "+" if node.operator == "++" else "-"
    new = moved(old, ONE, sign) if isinstance(old, Pointer) else Binary(sign, old, ONE)
    assign(walker, target, new, state, node, f"{sign}=")
    behind = node.children and node.source.data[node.start : node.start + 1] not in (b"+", b"-")
    return old if behind else new


def _assignment(walker: Walker, node: Node, state: State) -> Symbol:
    left, right, sign = node.get("left"), node.get("right"), node.operator or "="
    value = walker.evaluate(right, state)
    if left is None:
        return value
    if sign != "=" and left.kind == "identifier":
        if left.text in state.uninitialized:
            assign(walker, left, value, state, node, sign)
            return value
        old = walker.evaluate(left, state)
        operator = sign[:-1]
        if operator in ("/", "%"):
            kind = inferred.type_of(walker, left, state)
            walker.note("divide", node, state, by=(value,), on=old, name=operator, detail=kind)
        if operator == "+" and walker.loops:
            walker.note(
                "multiply", node, state, on=old, by=(value,), name="+=", detail=inferred.type_of(walker, left, state)
            )
        value = (
            moved(old, value, operator)
            if isinstance(old, Pointer) and operator in "+-"
            else Binary(operator, old, value)
        )
    elif sign in ("/=", "%="):  # out(i) /= d(i)
        kind = inferred.type_of(walker, left, state) if sign == "/=" else "int64"
        walker.note("divide", node, state, by=(value,), name=sign[0], detail=kind)
    narrowed(walker, node, state, value, inferred.type_of(walker, left, state))
    assign(walker, left, value, state, node, sign)
    return value


def _conditional(walker: Walker, node: Node, state: State) -> Symbol:
    condition = walker.evaluate(node.get("condition"), state)
    then, other = node.get("consequence"), node.get("alternative")
    facts = state.facts
    if any(each is not None and each.text in ("nullptr", "NULL") for each in (then, other)):
        holds = walker.choose(2) == 0
        state.assume(condition, holds)
        return walker.evaluate(then if holds else other, state) if state.feasible else UNKNOWN
    values: list[Symbol | None] = []
    for branch, holds in ((then, True), (other, False)):
        state.assume(condition, holds)
        values.append(walker.evaluate(branch, state) if state.feasible else None)
        state.facts, state.feasible = facts, True
    first, second = values
    if first is None or second is None:
        return first or second or UNKNOWN
    return first if first == second else Conditional(condition, first, second)


def _subscript(walker: Walker, node: Node, state: State) -> Symbol:
    base = walker.evaluate(node.get("argument"), state)
    return element(walker, node, state, base, indices(walker, node, state))


def _field(walker: Walker, node: Node, state: State) -> Symbol:
    known = state.variables.get(node.text)
    if known is not None:
        return known
    object_ = walker.evaluate(node.get("argument"), state)
    name = name_of(node.get("field"))
    if object_ == THIS:
        return state.members.get(name, walker.member(name))
    if node.operator == "->":
        use(walker, node, state, object_)
    if isinstance(object_, Pair) and name in ("first", "second"):
        return object_.first if name == "first" else object_.second
    if isinstance(object_, Result):
        walker.note("call", node, state, on=object_, name="->" + name)
    return Field(object_, name)


def _inner(walker: Walker, node: Node, state: State) -> Symbol:
    return walker.evaluate(node.children[-1], state) if node.children else UNKNOWN


def _comma(walker: Walker, node: Node, state: State) -> Symbol:
    walker.evaluate(node.get("left"), state)
    return walker.evaluate(node.get("right"), state)


def _braces(walker: Walker, node: Node, state: State) -> Symbol:
    return Braces(tuple(walker.evaluate(child, state) for child in node.children if child.kind != "comment"))


def _literal(walker: Walker, node: Node, state: State) -> Symbol:
    """Type{…}."""
    kind, value = node.get("type"), node.get("value")
    values = [walker.evaluate(each, state) for each in value.children] if value else []
    return made(walker, kind.text if kind else "", values, node.start, node, state, listed=True)


def _assembler(walker: Walker, node: Node, state: State) -> Symbol:
    """Its operands, in the order of their numbers; it may write wherever they point."""
    kinds = ("gnu_asm_output_operand", "gnu_asm_input_operand")
    values = [walker.evaluate(each.get("value"), state) for kind in kinds for each in node.find(kind)]
    for value in values:
        mark_written(state, value)
    walker.note("call", node, state, name="asm", by=values)
    return UNKNOWN


def _throw(walker: Walker, node: Node, state: State) -> Symbol:
    walker.note("throw", node, state, name="throw")
    state.feasible = False
    return UNKNOWN


EXPRESSIONS: dict[str, ExpressionHandler] = {
    "number_literal": _number,
    "string_literal": lambda _, node, __: String(string_of(node) or ""),
    "raw_string_literal": lambda _, node, __: String(string_of(node) or ""),
    "concatenated_string": lambda _, node, __: String(string_of(node) or ""),
    "char_literal": lambda _, node, __: Char(node.text),
    "true": lambda _, __, ___: TRUE,
    "false": lambda _, __, ___: FALSE,
    "null": lambda _, __, ___: NULL,
    "this": lambda _, __, ___: THIS,
    "identifier": _identifier,
    "qualified_identifier": _qualified,
    "template_function": lambda _, node, __: Name(node.text),
    "sizeof_expression": lambda _, node, __: SizeOf(node.text),
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
    "new_expression": new_expression,
    "delete_expression": delete_expression,
    "lambda_expression": lambda_expression,
    "throw_statement": _throw,
    "gnu_asm_expression": _assembler,
}
