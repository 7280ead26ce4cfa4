"""How rules speak of tensors, sizes and places."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node


def tensor_named(tensor: Symbol, op: Op | None) -> str:
    """ "input 0 (`x`)"."""
    if tensor[0] in ("input", "output"):
        arguments = (op.inputs if tensor[0] == "input" else op.outputs) if op else []
        at = tensor[1]
        if isinstance(at, int):
            name = f" (`{arguments[at].name}`)" if at < len(arguments) else ""
            return f"{tensor[0]} {at}{name}"
        if isinstance(at, str):
            return f"{tensor[0]} `{at}`"
        return f"an {tensor[0]}"
    if tensor[0] == "listed":
        return f"the inputs `{tensor[1]}`"
    return "a temporary tensor" if tensor[0] == "temp" else "a tensor"


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
