"""Why a program has so many threads: a function that runs on most of them, a generator that opens itself."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.diagnosis.evidence.traced import parse
from faultlens.inspection.frames import is_main, is_own
from faultlens.records.crash import Crash, Frame, Thread
from faultlens.records.diagnosis import Location

_MAKER = "from_generator"
MANY = 10  # threads


class Crowd(NamedTuple):
    """A function of the program that runs on many threads at once."""

    function: str
    threads: int


class SelfOpening(NamedTuple):
    """A generator that iterates the dataset which is made of it: each opens another one."""

    generator: str
    dataset: str  # the variable
    used: Location
    made: Location


def crowd(crash: Crash) -> Crowd | None:
    """None where no function has more threads than all others together."""
    own = [entry for thread in crash.threads if not is_main(thread, crash) and (entry := _entry(thread))]
    common = Counter(frame.function for frame in own).most_common(1)
    function, threads = common[0] if common else ("", 0)
    return Crowd(function, threads) if threads >= MANY and 2 * threads > len(own) else None


def opens_itself(crash: Crash) -> SelfOpening | None:
    found = (each for path, text in crash.sources.items() for each in _in_source(path, text))
    running = {frame.function for thread in crash.threads for frame in thread.frames if frame.kind == "python"}
    return next((each for each in found if each.generator in running), None)


def declarations(tree: ast.AST) -> Iterator[ast.stmt]:
    """Where datasets are made of generators, and what such a generator takes from outside."""
    for statement, _, generator in _made(tree):
        yield statement
        for function in _functions(tree, generator):
            yield function
            yield from (node for node in ast.walk(function) if isinstance(node, ast.For | ast.AsyncFor))


def _entry(thread: Thread) -> Frame | None:
    """The function of the program that the thread was started for, or that TensorFlow calls back on it."""
    own = [frame for frame in thread.frames if frame.kind == "python" and is_own(frame)]
    return own[-1] if own else None


def _in_source(path: str, text: str) -> Iterator[SelfOpening]:
    tree = parse(text) if _MAKER in text else None
    for statement, dataset, generator in _made(tree) if tree else ():
        for function in _functions(tree, generator) if tree else ():
            uses = [each for each in ast.walk(function) if isinstance(each, ast.Name | ast.Attribute)]
            mentions = [node for node in uses if _name(node) == dataset]
            local = dataset in {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
            if local or any(isinstance(node.ctx, ast.Store) for node in mentions):
                continue  # another one of that name
            for node in mentions:
                used = Location(file=path, line=node.lineno, function=function.name)
                made = Location(file=path, line=statement.lineno, function="")
                yield SelfOpening(function.name, dataset, used, made)


def _made(tree: ast.AST) -> Iterator[tuple[ast.Assign, str, str]]:
    """Assignments of datasets that are made of a generator, with the variable and the generator's name."""
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assign):
            continue
        for call in ast.walk(statement.value):
            if isinstance(call, ast.Call) and _name(call.func) == _MAKER:
                named = [keyword.value for keyword in call.keywords if keyword.arg == "generator"]
                generators = [name for each in (*call.args[:1], *named) if (name := _name(each))]
                for target in statement.targets:
                    if generators and (variable := _name(target)):
                        yield statement, variable, generators[0]


def _functions(tree: ast.AST, name: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)


def _name(node: ast.AST) -> str:
    """Of a variable, or of an attribute: `ds` and `self.ds` are taken for the same."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
