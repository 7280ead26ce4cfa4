"""Which objects would the threads of a pipeline use at the same time, though these do not bear it?

Only what is known to go wrong: reading a dictionary, a list or an HDF5 file from several threads is fine."""

from __future__ import annotations

import ast
import inspect
import io
import tarfile
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_MOVES = frozenset({"read", "read1", "readinto", "readline", "readlines", "seek"})


class Shared(NamedTuple):
    name: str
    what: str  # it is: "an open file"
    harm: str


def shared(function: Callable[..., Any]) -> list[Shared]:
    used = dict(_used(function))
    if any(hasattr(value, "acquire") and hasattr(value, "release") for value in used.values()):
        return []  # somebody has thought of it
    calls = _names(_code(function))
    found = []
    for name, value in used.items():
        if isinstance(value, types.GeneratorType):
            harm = 'a second thread that asks it at the same time gets "ValueError: generator already executing"'
            found.append(Shared(name, "a generator", harm))
        elif isinstance(value, io.IOBase) and calls & _MOVES:
            harm = "it has one position for all threads: one reads where another has moved to"
            found.append(Shared(name, "an open file", harm))
        elif isinstance(value, tarfile.TarFile) and "extractfile" in calls:
            found.append(Shared(name, "an open tar archive", "it has one position for all threads"))
        elif is_buffer(value) and name in handed_out(function):
            found.append(Shared(name, "an array", "each call writes to it and returns it, while others still use it"))
    return found


def is_buffer(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "__array_interface__") and value.ndim > 0


def buffers(function: Callable[..., Any]) -> dict[str, Any]:
    """Arrays from outside of the function that it writes to and returns."""
    names = handed_out(function)
    return {name: value for name, value in _used(function) if name in names and is_buffer(value)}


def handed_out(function: Callable[..., Any]) -> set[str]:
    """Names that the function fills (`name[…] = …`, `out=name`, `name.fill(…)`) and returns as they are."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return set()
    written, returned = set[str](), set[str]()
    for node in ast.walk(tree):
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


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Objects from outside of the function, under the names that it has for them."""
    if isinstance(function, types.MethodType):
        attributes = getattr(function.__self__, "__dict__", {})
        names = _names(function.__code__)
        yield from ((f"self.{name}", value) for name, value in attributes.items() if name in names)
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # not set yet
    for name in _names(function.__code__) & function.__globals__.keys():
        yield name, function.__globals__[name]


def _code(function: Callable[..., Any]) -> types.CodeType | None:
    code = getattr(function, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _names(code: types.CodeType | None) -> set[str]:
    """Of attributes, methods and globals, also in functions within."""
    if code is None:
        return set()
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
