"""Which C++ type an expression has, as far as its own text tells."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Array, Pointer, Vector, View
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node, name_of, template_arguments
from faultlens.custom_op.check.syntax.types import is_integer, tidy

_RANKS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double")
_METHODS = {
    "dim_size": "int64", "NumElements": "int64", "num_elements": "int64", "dimension": "int64", "TotalBytes": "uint64",
    "size": "uint64", "length": "uint64", "dims": "int32", "num_inputs": "int32",
}  # fmt: skip


def type_of(walker: Walker, node: Node | None, state: State) -> str:
    """ "" where it is not known."""
    if node is None:
        return ""
    kind = node.kind
    if kind == "number_literal":
        text = node.text.lower()
        if not text.startswith("0x") and ("." in text or "e" in text):
            return "float" if text.endswith("f") else "double"
        return "int64" if text.endswith("l") else "int32"
    if kind in ("identifier", "field_identifier"):
        return _variable(walker, node.text, state)
    if kind == "parenthesized_expression":
        return type_of(walker, node.children[0], state) if node.children else ""
    if kind == "cast_expression":
        cast = node.get("type")
        return tidy(cast.text) if cast else ""
    if kind == "unary_expression":
        return type_of(walker, node.get("argument"), state)
    if kind == "binary_expression":
        if node.operator in ("==", "!=", "<", ">", "<=", ">=", "&&", "||"):
            return "bool"
        return _wider(type_of(walker, node.get("left"), state), type_of(walker, node.get("right"), state))
    if kind in ("call_expression", "subscript_expression"):
        return _called(walker, node, state)
    if kind == "field_expression":
        return _variable(walker, node.text, state)
    return "bool" if kind in ("true", "false") else ""


def _variable(walker: Walker, name: str, state: State) -> str:
    known = state.types.get(name)
    if known is None and walker.owner is not None and name in walker.owner.members:
        known = walker.owner.members[name].type
    return tidy(known) if known else ""


def _called(walker: Walker, node: Node, state: State) -> str:
    function = node.get("function") or node.get("argument")
    if function is None:
        return ""
    name = name_of(function)
    if name in ("static_cast", "reinterpret_cast", "const_cast"):
        types = template_arguments(function)
        return tidy(types[0]) if types else ""
    if function.kind == "identifier" or node.kind == "subscript_expression":
        value = state.variables.get(function.text)
        if isinstance(value, (View, Pointer, Array, Vector)):
            return tidy(value.type)
    if function.kind == "field_expression":
        object_ = function.get("argument")
        if name == "size" and object_ is not None and _is_view(object_, state):
            return "int64"
        return _METHODS.get(name, "")
    if function.kind == "call_expression":  # x.flat<int32>()(i)
        types = template_arguments(function.get("function"))
        return tidy(types[0]) if types else ""
    if is_integer(tidy(name)) or tidy(name) in ("float", "double"):
        return tidy(name)
    found = walker.program.function(name)
    return tidy(found.returns) if found else ""


def _is_view(node: Node, state: State) -> bool:
    value = state.variables.get(node.text)
    return isinstance(value, View) or node.kind == "call_expression"


def _wider(left: str, right: str) -> str:
    if left in _RANKS and right in _RANKS:
        return max(left, right, "int32", key=_RANKS.index)
    return ""
