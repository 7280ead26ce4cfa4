"""Which names a Python file takes from a module when it is imported, and which names a module has: from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from faultlens.system.procfs import read_text


def lacking(user: Path, module: str, source: Path) -> tuple[str, ...]:
    """Names that `user` takes from `module` at import and `source` does not define; nothing where that is unclear."""
    text, definitions = read_text(user) or "", read_text(source) or ""
    words = set(re.findall(r"\w+", definitions))
    if words.issuperset(re.findall(rf"\b{module}\.(\w+)", text)):
        return ()  # the usual case, seen without parsing
    try:
        using, defining = ast.parse(text), ast.parse(definitions)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = _defined(defining)
    if not names:
        return ()
    return tuple(dict.fromkeys(name for name in _taken(using, module) if name not in names))


def _taken(node: ast.AST, module: str) -> Iterator[str]:
    """What is certainly evaluated: no bodies of functions, nothing after `if` or `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.If, ast.IfExp, ast.Try)):
            continue
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == module:
            yield child.attr
        yield from _taken(child, module)


def _defined(tree: ast.Module) -> frozenset[str]:
    """All names that the module may have, generously: any that stand in it. None where it makes them while it runs."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            if not isinstance(node.body[-1], ast.Raise):  # else it knows names that stand there as texts
                return frozenset()
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return frozenset() if found & {"*", "globals", "vars", "setattr", "exec"} else frozenset(found)
