"""Which lines of the user's sources some rule may look at: a report keeps these, and not the rest."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence import awaited, call_arguments, crowds, custom_ops, locks, sources, traced, views
from faultlens.diagnosis.evidence.wordings import ANY
from faultlens.inspection.owners import custom_libraries
from faultlens.records.crash import Crash


def telling_lines(crash: Crash) -> dict[str, set[int]]:
    """For each of the sources of a crash, which must be whole."""
    modules = {PurePosixPath(path).name.partition(".")[0] for path in custom_libraries(crash)}
    own_ops = {op.lower() for op in custom_ops.loaded_ops(crash)}
    trees = {path: traced.parse(text) for path, text in crash.sources.items()}
    defined = {
        node.name
        for tree in trees.values()
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    parsed = [path for path, tree in trees.items() if tree]
    named = awaited.mentions([tree for tree in trees.values() if tree]) if crash.was_running else {}
    found: dict[str, set[int]] = {}
    for path, text in crash.sources.items():
        found[path] = {number for number, line in enumerate(text.split("\n"), 1) if ANY.search(line.split("#")[0])}
        if tree := trees[path]:
            found[path] |= {node.lineno for node in _statements(tree)}
            found[path] |= {node.lineno for node in locks.lock_lines(tree)} if crash.was_running else set()
            found[path] |= named.get(parsed.index(path), set())
            found[path] |= set(_calls(text, modules, own_ops, defined)) | set(views.declarations(text, modules))
    return found


def _calls(text: str, modules: Collection[str], own_ops: Collection[str], defined: Collection[str]) -> Iterator[int]:
    found = sources.of_text(text)
    for use in found.calls:
        on_thread = use.within in found.thread_targets and use.name in defined
        custom = use.receiver in modules or use.name.replace("_", "").lower() in own_ops
        if on_thread or custom or sources.is_telling(use) or use.name in ("exit", "_exit", "SystemExit"):
            yield use.line


def _statements(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
    yield from sources.declarations(tree)
    yield from traced.declarations(tree)
    yield from custom_ops.declarations(tree)
    yield from crowds.declarations(tree)
    yield from call_arguments.declarations(tree)
