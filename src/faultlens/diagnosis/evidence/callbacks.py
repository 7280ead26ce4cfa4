"""ctypes callbacks whose Python object nobody keeps: they are gone when the call that takes them returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use
from faultlens.diagnosis.evidence.traced import parse
from faultlens.inspection.owners import is_ctypes, owner_of

_FACTORIES = frozenset({"CFUNCTYPE", "PYFUNCTYPE"})


def temporary_callback(case: Case) -> Use | None:
    """The only one that the sources make, if the process died in Python's own code that a foreign function called."""
    if not case.native_stack or owner_of(case.native_stack[0]) != "python" or not _called_back(case):
        return None
    found = list(_temporary(case.crash.sources))
    return found[0] if len(found) == 1 else None


def _called_back(case: Case) -> bool:
    """The innermost Python function was called by ctypes, not by Python."""
    python = next((index for index, frame in enumerate(case.stack) if frame.kind == "python"), None)
    below = case.stack[python + 1] if python is not None and python + 1 < len(case.stack) else None
    return below is not None and below.kind == "native" and is_ctypes(below)


def _temporary(sources: Mapping[str, str]) -> Iterator[Use]:
    for file, text in sources.items():
        tree = parse(text)
        made = {
            target.id
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and _last(node.value.func) in _FACTORIES
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in (node for node in (ast.walk(tree) if tree else ()) if isinstance(node, ast.Call)):
            for argument in call.args:
                if isinstance(argument, ast.Call) and _makes_callback(argument.func, made):
                    yield Use(file, argument.lineno, _last(argument.func) or "CFUNCTYPE", "<module>")


def _makes_callback(function: ast.expr, made: set[str]) -> bool:
    """PROGRESS(f), or CFUNCTYPE(None)(f)."""
    if isinstance(function, ast.Call):
        return _last(function.func) in _FACTORIES
    return isinstance(function, ast.Name) and function.id in made


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
