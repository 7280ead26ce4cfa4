"""What importing a package certainly imports, read from its sources: nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from faultlens.system.procfs import read_text
from faultlens.target_env.imports import would_import

MAX_FILES = 500  # of one package
_IMPORTERS = ("__import__", "import_module")
_CAUGHT = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


class Place(NamedTuple):
    file: Path
    line: int


class Refusal(NamedTuple):
    """`raise ImportError` at the end of a chain of conditions, where nothing that would do is there."""

    place: Place
    message: str
    others: frozenset[str]  # names and texts in the conditions: what may stand in


@dataclass
class Imports:
    """Of one package, and of all modules in it that its own import leads to."""

    certain: dict[str, Place] = field(default_factory=dict)  # other packages, by the first line that imports each
    tried: dict[str, Place] = field(default_factory=dict)  # those whose absence is caught there
    possible: set[str] = field(default_factory=set)  # those that are imported under some condition
    refusals: list[Refusal] = field(default_factory=list)
    files: tuple[Path, ...] = ()  # that were read

    def mentioned(self, name: str) -> Place | None:
        """Where the name stands as a word: a package may import it in some other way."""
        word = _word(name)
        for file in self.files:
            for number, line in enumerate((read_text(file) or "").splitlines(), 1):
                if word.search(line.partition("#")[0]):
                    return Place(file, number)
        return None

    def refused(self, name: str, is_there: Callable[[str], bool]) -> Place | None:
        """Where the import ends without this package, and without the others that would do."""
        for refusal in self.refusals:
            if _word(name).search(refusal.message) and not any(is_there(other) for other in refusal.others - {name}):
                return refusal.place
        return None

    def does_without(self, name: str) -> Place | None:
        """Where its absence is caught, if it is imported in no other way."""
        return None if name in self.certain or name in self.possible else self.tried.get(name)


def imports_of(name: str, path: Iterable[str | Path]) -> Imports:
    """`name` is a package or module that is found on the path."""
    found, told = would_import(name, path), Imports()
    if found is None or found.kind == "namespace":
        return told
    start = found.place / "__init__.py" if found.kind == "package" else found.place
    root = start.parent if found.kind == "package" else None
    seen = {start: None}
    waiting = [start]
    while waiting and len(seen) <= MAX_FILES:
        file = waiting.pop(0)
        tree = _parsed(file)
        for module, line in _certain(tree, file, root):
            top, _, inner = module.partition(".")
            if top != name:
                told.certain.setdefault(top, Place(file, line))
            elif root is not None and (inside := _file_of(root, inner)) is not None and inside not in seen:
                seen[inside] = None
                waiting.append(inside)
        _note_conditional(tree.body, file, told)
        told.refusals += _refusals(tree, file)
    told.files = tuple(seen)
    return told


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(read_text(file) or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _certain(tree: ast.Module, file: Path, root: Path | None) -> Iterator[tuple[str, int]]:
    """Full names, with their lines: of statements at the outermost level, neither after `if` nor after `try`."""
    inside = [root.name, *file.parent.relative_to(root).parts] if root is not None else []
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, (ast.Expr, ast.Assign)):
            yield from ((text, node.lineno) for text in _texts(_imported_by_call(node)))
        elif isinstance(node, ast.For) and isinstance(node.iter, (ast.Tuple, ast.List)):
            named = node.target.id if isinstance(node.target, ast.Name) else None
            simple = (each for each in node.body if isinstance(each, (ast.Expr, ast.Assign)))
            calls = (argument for each in simple for argument in _imported_by_call(each))
            if any(isinstance(argument, ast.Name) and argument.id == named for argument in calls):
                yield from ((text, node.lineno) for text in _texts(node.iter.elts))


def _imported_by_call(statement: ast.Expr | ast.Assign) -> Iterator[ast.expr]:
    """What `__import__(…)` and `import_module(…)` are given, where the statement is that call and no more."""
    call = statement.value
    if isinstance(call, ast.Call) and call.args:
        function = call.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in _IMPORTERS:
            yield call.args[0]


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _note_conditional(statements: Iterable[ast.stmt], file: Path, told: Imports, caught: bool | None = None) -> None:
    """What is imported inside of other statements, if they are run at all. `caught`: its absence is; None: it is not
    inside of any."""
    for node in statements:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for top in (module.partition(".")[0] for module in modules if caught is not None):
                if caught:
                    told.tried.setdefault(top, Place(file, node.lineno))
                else:
                    told.possible.add(top)
        elif isinstance(node, ast.Try):
            inner = bool(caught) or any(_catches(handler) for handler in node.handlers)
            _note_conditional(node.body, file, told, inner)
            for part in (node.orelse, node.finalbody, *(handler.body for handler in node.handlers)):
                _note_conditional(part, file, told, bool(caught))
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in (getattr(node, "body", []), getattr(node, "orelse", [])):
                _note_conditional(part, file, told, bool(caught))


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CAUGHT) for kind in kinds)


def _refusals(tree: ast.Module, file: Path) -> Iterator[Refusal]:
    for node in tree.body:
        conditions: list[ast.expr] = []
        while isinstance(node, ast.If):
            conditions.append(node.test)
            if len(node.orelse) != 1:
                break
            node = node.orelse[0]
        raised = node.exc if isinstance(node, ast.Raise) and conditions else None
        if isinstance(raised, ast.Call) and getattr(raised.func, "id", "") in _CAUGHT[:2]:
            message = " ".join(_texts(raised.args))
            yield Refusal(Place(file, node.lineno), message, frozenset(_names(conditions)))


def _names(conditions: Iterable[ast.expr]) -> Iterator[str]:
    for condition in conditions:
        yield from (node.id for node in ast.walk(condition) if isinstance(node, ast.Name))
        yield from _texts(ast.walk(condition))


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b")


def _file_of(root: Path, inner: str) -> Path | None:
    """None for what is no module: a name that is taken from one."""
    place = root.joinpath(*inner.split(".")) if inner else root
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None
