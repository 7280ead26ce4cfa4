"""Makes a Python program smaller while it still does what it did. Pure but for the question that is asked.

Delta debugging over the syntax tree: statements go first, then blocks are unwrapped and functions put in the place of
their calls, then expressions get simpler. No step needs to keep the meaning: whether the program still dies the same
way is asked after each one."""

from __future__ import annotations

import ast
import builtins
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from faultlens.op_model.shrink_op import OutOfTimeError
from faultlens.repro.syntax_edits import Edit, inlined, is_compound, simpler_expressions, unwrapped, without_statements

Sources = dict[str, str]  # file name -> text
Test = Callable[[Sources], bool]

_BLOCK = 3  # what a block weighs: less than the statements that are worth having instead
_ALWAYS_THERE = frozenset({*dir(builtins), "__file__", "__name__", "__doc__"})
_PASSES: tuple[Callable[[ast.Module], Iterator[Edit]], ...] = (
    without_statements,
    inlined,
    unwrapped,
    without_statements,
    simpler_expressions,
)


def reduce(sources: Mapping[str, str], test: Test, check_time: Callable[[], None] = lambda: None) -> Sources:
    """The smallest program found that passes the test. Both `test` and `check_time` may raise OutOfTimeError."""
    search = _Search(dict(sources), test, check_time)
    try:
        before: Sources | None = None
        while before != search.sources:
            before = search.sources
            search.drop_files()
            for edits in _PASSES:
                for name in list(search.sources):
                    search.carry_out(name, edits)
    except OutOfTimeError:
        pass
    return search.sources


def count_lines(text: str) -> int:
    """Lines of code: neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


class _Search:
    def __init__(self, sources: Sources, test: Test, check_time: Callable[[], None]) -> None:
        self.sources = sources
        self._test = test
        self._check_time = check_time  # most edits of a large program are no good, and never come to a test
        self._tried: set[str] = set()

    def attempt(self, candidate: Sources) -> bool:
        key = "\0".join(candidate.values())
        if key in self._tried:
            return False
        self._tried.add(key)
        if self._test(candidate):
            self.sources = candidate
            return True
        return False

    def drop_files(self) -> None:
        for name in list(self.sources)[1:]:  # the first is the program itself
            self.attempt({each: text for each, text in self.sources.items() if each != name})

    def carry_out(self, name: str, edits: Callable[[ast.Module], Iterator[Edit]]) -> None:
        """Try all edits of a kind; after one that was kept the same places are looked at again."""
        if name not in self.sources:
            return
        tree = _parsed(self.sources[name])
        waiting = list(edits(tree)) if tree else []
        number = 0
        while tree and number < len(waiting):
            self._check_time()
            changed = self._changed(tree, waiting[number])
            if changed is not None and self.attempt({**self.sources, name: ast.unparse(changed)}):
                tree, waiting = changed, list(edits(changed))
            else:
                number += 1

    def _changed(self, tree: ast.Module, edit: Edit) -> ast.Module | None:
        """A changed copy, if it is smaller and could run at all."""
        changed = copy.deepcopy(tree)
        try:
            if not edit(changed):
                return None
            ast.fix_missing_locations(changed)
            text = ast.unparse(changed)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # "'int' object is not callable": it would not run
                compile(text, "reduced", "exec", dont_inherit=True)
        except (SyntaxError, Warning, ValueError, RecursionError, AttributeError, IndexError, TypeError):
            return None
        if _weight(changed) >= _weight(tree) or _unbound(changed) - _unbound(tree):
            return None
        return _parsed(text)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _weight(tree: ast.Module) -> tuple[int, int, int]:
    """What must become less: statements (blocks count more), then parts of expressions, then the size of constants."""
    nodes = list(ast.walk(tree))
    statements = sum(_BLOCK if is_compound(node) else 1 for node in nodes if isinstance(node, ast.stmt))
    constants = sum(_constant_weight(node.value) for node in nodes if isinstance(node, ast.Constant))
    return statements, len(nodes), constants


def _constant_weight(value: Any) -> int:
    if isinstance(value, (bool, type(None))):
        return 0
    if isinstance(value, int):
        return 2 * value.bit_length() + (value < 0)
    return 2 * len(repr(value)) if value else 1


def _unbound(tree: ast.Module) -> set[str]:
    """Names that nothing in the file binds. A program with more of them than before would end in a NameError."""
    bound: set[str] = set(_ALWAYS_THERE)
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
            if node.name == "*":
                return set()
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            bound.update(node.names)
    return used - bound
