"""What importing a package certainly imports, read from its sources: nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.system.procfs import read_text
from faultlens.target_env.imports import would_import

MAX_FILES = 500  # of one package


class Place(NamedTuple):
    file: Path
    line: int


class Imports(NamedTuple):
    """Of one package, and of all modules in it that its own import leads to."""

    certain: dict[str, Place]  # names of other packages, by the first line that imports each
    files: tuple[Path, ...]  # that were read

    def mentioned(self, name: str) -> Place | None:
        """Where the name stands as a word: a package may import it in some other way."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        for file in self.files:
            for number, line in enumerate((read_text(file) or "").splitlines(), 1):
                if word.search(line.partition("#")[0]):
                    return Place(file, number)
        return None


def imports_of(name: str, path: Iterable[str | Path]) -> Imports:
    """`name` is a package or module that is found on the path."""
    found = would_import(name, path)
    if found is None or found.kind == "namespace":
        return Imports({}, ())
    start = found.place / "__init__.py" if found.kind == "package" else found.place
    root = start.parent if found.kind == "package" else None
    certain: dict[str, Place] = {}
    seen = {start: None}
    waiting = [start]
    while waiting and len(seen) <= MAX_FILES:
        file = waiting.pop(0)
        for module, line in _imported(file, root):
            top, _, inner = module.partition(".")
            if top != name:
                certain.setdefault(top, Place(file, line))
            elif root is not None and (inside := _file_of(root, inner)) is not None and inside not in seen:
                seen[inside] = None
                waiting.append(inside)
    return Imports(certain, tuple(seen))


def _imported(file: Path, root: Path | None) -> Iterator[tuple[str, int]]:
    """Full names, with their lines: of statements at the outermost level, neither after `if` nor after `try`."""
    try:
        tree = ast.parse(read_text(file) or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    inside = [root.name, *file.parent.relative_to(root).parts] if root is not None else []
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def _file_of(root: Path, inner: str) -> Path | None:
    """None for what is no module: a name that is taken from one."""
    place = root.joinpath(*inner.split(".")) if inner else root
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None
