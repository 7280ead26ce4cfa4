"""How rules speak of tensors, sizes and places."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Input, Listed, Output, Temporary
from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.syntax.registered import Argument, Op
from faultlens.custom_op.check.syntax.syntax import Node


def tensor_named(tensor: Symbol, op: Op | None) -> str:
    """ "input 0 (`x`)"."""
    match tensor:
        case Input(index):
            return _argument_named("input", index, op.inputs if op else [])
        case Output(index):
            return _argument_named("output", index, op.outputs if op else [])
        case Listed(name):
            return f"the inputs `{name}`"
        case Temporary():
            return "a temporary tensor"
    return "a tensor"


def _argument_named(side: str, index: int | str | Symbol, arguments: list[Argument]) -> str:
    if isinstance(index, int):
        name = f" (`{arguments[index].name}`)" if index < len(arguments) else ""
        return f"{side} {index}{name}"
    return f"{side} `{index}`" if isinstance(index, str) else f"an {side}"


def context_of(node: Node) -> str:
    """What the context is called in the function around."""
    for above in node.above():
        if above.kind in ("function_definition", "lambda_expression"):
            head = above.text.partition("{")[0]
            for name in ("ctx", "context", "op_context", "c"):
                if f"* {name}" in head or f"*{name}" in head or f" {name})" in head:
                    return name
    return "ctx"


def object_text(node: Node) -> str:
    """`x` of `x.flat<float>()`."""
    function = node.get("function")
    target = function.get("argument") if function is not None else None
    return target.text if target is not None and len(target.text) < 40 else "x"


def short(node: Node | None, most: int = 48) -> str:
    text = " ".join(node.text.split()) if node is not None else ""
    return text if len(text) <= most else text[: most - 1] + "…"
