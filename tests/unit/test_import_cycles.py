"""No two modules of a package need each other, not even for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import faultlens

ROOT = Path(faultlens.__file__).parent
PACKAGES = ["."]  # folders below the root

Graph = dict[str, set[str]]


def modules(root: Path, folder: str) -> dict[str, Path]:
    """The modules of a folder by name; a package is its `__init__.py`."""
    found = {}
    for path in sorted((root / folder).rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each import, wherever it stands: under TYPE_CHECKING and in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((base, each.name) for each in node.names)


def import_graph(known: dict[str, Path]) -> Graph:
    graph: Graph = {name: set() for name in known}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for module, member in imported(ast.parse(path.read_text()), package):
            inner = f"{module}.{member}"
            target = inner if inner in known else module
            if target in known and target != name:
                graph[name].add(target)
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of modules that reach each other (Tarjan's strongly connected components of more than one)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in number:
            visit(name)
    return found


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_modules_import_each_other(folder: str) -> None:
    assert cycles(import_graph(modules(ROOT, folder))) == []


def test_a_cycle_under_type_checking_is_found(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "till.py").write_text("from shop import stock\n")
    (package / "stock.py").write_text("from . import shelf\n")
    (package / "shelf.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.till import Till\n"
    )
    (package / "street.py").write_text("import shop.till\n")
    assert cycles(import_graph(modules(package, "."))) == [["shop.shelf", "shop.stock", "shop.till"]]
