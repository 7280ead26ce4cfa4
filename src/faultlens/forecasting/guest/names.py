"""What is known of a function of a file without running it: that it is not there, or cannot be called.

Read by the user's own Python, whose syntax it is, before TensorFlow is imported. What cannot be known is left to the
import."""

from __future__ import annotations

import ast
import difflib
import os
import warnings
from typing import Any

# Through these a module may get names that do not stand in it.
DYNAMIC = {"globals", "vars", "locals", "exec", "eval", "setattr", "modules", "__dict__"}
MAX_NAMED = 5
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def problem(file: str, function: str, given: int) -> str | None:
    """Why `function` cannot be called with so many arguments, in a sentence."""
    name = os.path.basename(file)
    try:
        with open(file, "rb") as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are told when it is imported
            tree = ast.parse(source.read(), file)
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}."
    except SyntaxError as error:
        return f"{name} is not valid Python: line {error.lineno}: {error.msg}."
    except ValueError as error:  # bytes that are no text
        return f"{name} is not valid Python: {error}."
    except (RecursionError, MemoryError):
        return None
    names = _Names(tree.body)
    if function not in names.bound and not names.is_open:
        return f"{name} has no function {function}{_instead(function, names)}"
    definitions = names.bound.get(function, [])
    if len(definitions) == 1 and isinstance(definitions[0], FUNCTIONS) and not definitions[0].decorator_list:
        return _wrong_arguments(definitions[0], given)
    return None


class _Names:
    """The names that a module has when another imports it, and what defines them."""

    def __init__(self, statements: list[ast.stmt]) -> None:
        self.bound: dict[str, list[ast.AST]] = {}
        self.guarded: set[str] = set()  # only there when the file is run by itself
        self.is_open = False  # it may have others
        waiting: list[ast.AST] = list(statements)
        while waiting:  # not by recursion: expressions can be deep
            node = waiting.pop()
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                self._define(node)
            elif isinstance(node, ast.If) and _is_main_guard(node.test):
                self.guarded |= set(_Names(node.body).bound)
                waiting += node.orelse
            else:
                self._look_at(node)
                waiting += ast.iter_child_nodes(node)

    def _define(self, node: Any) -> None:
        self._bind(node.name, node)
        self.is_open |= node.name == "__getattr__"
        for inner in ast.walk(node):  # its own names are nobody else's
            self._look_for_dynamic(inner)
            for name in inner.names if isinstance(inner, ast.Global) else ():
                self._bind(name, inner)

    def _look_at(self, node: ast.AST) -> None:
        self._look_for_dynamic(node)
        if isinstance(node, ast.alias):
            self.is_open |= node.name == "*"
            self._bind(node.asname or node.name.partition(".")[0], node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._bind(node.id, node)
        else:
            for name in (getattr(node, "name", None), getattr(node, "rest", None)):  # except … as, match … case
                if isinstance(name, str):
                    self._bind(name, node)

    def _look_for_dynamic(self, node: ast.AST) -> None:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        self.is_open |= name in DYNAMIC

    def _bind(self, name: str, node: ast.AST) -> None:
        self.bound.setdefault(name, []).append(node)


def _is_main_guard(test: ast.expr) -> bool:
    """`__name__ == "__main__"`."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    return names == ["__name__"] and any(getattr(side, "value", None) == "__main__" for side in sides)


def _instead(function: str, names: _Names) -> str:
    if function in names.guarded:
        return " when it is imported: it is defined under `if __name__ == '__main__':`."
    there = [name for name, nodes in names.bound.items() if isinstance(nodes[-1], (*FUNCTIONS, ast.ClassDef))]
    if close := difflib.get_close_matches(function, there, 1):
        return f". Did you mean {close[0]}?"
    more = ", …" if len(there) > MAX_NAMED else ""
    return f"; it has {', '.join(there[:MAX_NAMED])}{more}." if there else "."


def _wrong_arguments(node: Any, given: int) -> str | None:
    wanted, called = node.args, f"{node.name} is called as {node.name}({'batch_size' if given else ''})"
    positional = [argument.arg for argument in (*wanted.posonlyargs, *wanted.args)]
    needed = positional[given : len(positional) - len(wanted.defaults)]
    needed += [each.arg for each, default in zip(wanted.kwonlyargs, wanted.kw_defaults) if default is None]
    if needed:
        return f"{called}, and needs more: {', '.join(needed)}. Name a function that calls it with them."
    if given > len(positional) and wanted.vararg is None:
        return f"{called}, and takes no argument. Let it take the batch size."
    return None
