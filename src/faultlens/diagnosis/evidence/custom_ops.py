"""The ops of libraries that the user's sources load: lib = tf.load_op_library(…); lib.pad_right(x) is PadRight."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from faultlens.diagnosis.evidence.traced import parse
from faultlens.knowledge.op_names import plain, registered
from faultlens.records.crash import Crash

_LOADER = "load_op_library"
_NO_OPS = frozenset({"OP_LIST", "LIB_HANDLE"})  # what such a library has besides


def loaded_ops(crash: Crash) -> tuple[str, ...]:
    """Those that the sources name, under the names that they are registered by."""
    if not any(_LOADER in text for text in crash.sources.values()):
        return ()
    return _loaded([tree for text in crash.sources.values() if (tree := parse(text))])


def named_after(kernel: str, ops: Collection[str]) -> str | None:
    """The op of these that a kernel's class computes: people name it after the op, more or less.

    None where TensorFlow has an op of that name itself, or several could be meant."""
    if registered(kernel) or not kernel.isidentifier():
        return None
    name = plain(kernel)
    begin = [op for op in ops if name.startswith(plain(op))]
    begun = [op for op in ops if plain(op).startswith(name)]
    return max(begin, key=len) if begin else begun[0] if len(begun) == 1 else None


def declarations(tree: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """Where libraries of ops are loaded, and where their functions are named."""
    yield from _loads(tree, _loaders(tree))
    yield from _functions(tree, _libraries([tree]), _loaders(tree))


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))


def _loaded(trees: Collection[ast.AST]) -> tuple[str, ...]:
    """A module may load the library that another one uses."""
    libraries, loaders = _libraries(trees), {name for tree in trees for name in _loaders(tree)}
    found = (node.attr for tree in trees for node in _functions(tree, libraries, loaders))
    return tuple(dict.fromkeys(camel(name) for name in found))


def _libraries(trees: Collection[ast.AST]) -> set[str]:
    """The variables that hold them."""
    targets = (target for tree in trees for node in _loads(tree, _loaders(tree)) for target in node.targets)
    return {name for target in targets if (name := _last_name(target))}


def _loaders(tree: ast.AST) -> set[str]:
    """Functions that load a library and return it."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {_LOADER} | {
        function.name
        for function in functions
        if any(isinstance(node, ast.Return) and _is_load(node.value, {_LOADER}) for node in ast.walk(function))
    }


def _loads(tree: ast.AST, loaders: Collection[str]) -> Iterator[ast.Assign]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_load(node.value, loaders):
            yield node


def _functions(tree: ast.AST, libraries: Collection[str], loaders: Collection[str]) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr.startswith("_") or node.attr in _NO_OPS:
            continue
        if isinstance(node.ctx, ast.Load) and (_is_load(node.value, loaders) or _last_name(node.value) in libraries):
            yield node


def _is_load(node: ast.expr | None, loaders: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) in loaders


def _last_name(node: ast.expr) -> str:
    """Of a variable or an attribute."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
