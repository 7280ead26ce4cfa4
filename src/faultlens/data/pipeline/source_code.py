"""What does a function do with the names that it uses, as far as its code tells?"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

_OUTSIDE = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
_LOCAL = "LOAD_FAST"  # also with an ending
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def chains(code: types.CodeType) -> set[tuple[str, ...]]:
    """`self.file.read` as ("self", "file", "read"): globals, closures, the first argument; in functions within too."""
    first = code.co_varnames[:1] if code.co_argcount else ()
    found, chain = set[tuple[str, ...]](), tuple[str, ...]()
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTES and chain:
            chain = (*chain, str(step.argval))
            continue
        if chain:
            found.add(chain)
        known = step.opname in _OUTSIDE or (step.opname.startswith(_LOCAL) and step.argval in first)
        chain = (str(step.argval),) if known else ()
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return found.union(*map(chains, inner))


def handed_out(function: Callable[..., Any]) -> set[str]:
    """Names that the function fills (`name[…] = …`, `out=name`, `name.fill(…)`) and returns as they are."""
    written, returned = set[str](), set[str]()
    for node in _nodes(function):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            written |= {_dotted(each.value) for each in targets if isinstance(each, ast.Subscript)}
        elif isinstance(node, ast.Call):
            written |= {_dotted(each.value) for each in node.keywords if each.arg == "out"}
            if isinstance(node.func, ast.Attribute) and node.func.attr == "fill":
                written.add(_dotted(node.func.value))
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "copyto" and node.args:
                written.add(_dotted(node.args[0]))
        elif isinstance(node, ast.Return) and node.value is not None:
            values = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
            returned |= {_dotted(each) for each in values}
    return (written & returned) - {""}


def counted(function: Callable[..., Any]) -> set[str]:
    """Names with `name[…] += …`."""
    found = (node.target for node in _nodes(function) if isinstance(node, ast.AugAssign))
    return {_dotted(each.value) for each in found if isinstance(each, ast.Subscript)} - {""}


def _nodes(function: Callable[..., Any]) -> Iterator[ast.AST]:
    try:
        return ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return iter(())  # nobody can tell


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""
