"""What a line of the program waits for, by name: `items.get()`; and which lines could end the wait: `items.put()`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from faultlens.diagnosis.evidence.traced import parse
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame

# The methods that wait, and those of the same object that end the wait. All others may end it, too: a Condition's.
_ENDED_BY: dict[str, tuple[str, ...]] = {
    "get": ("put", "put_nowait"),
    "put": ("get", "get_nowait"),
    "wait": ("set", "notify", "notify_all", "abort"),
    "wait_for": ("notify", "notify_all"),
    "join": ("task_done",),
    "result": ("set_result", "set_exception"),
    "acquire": ("release",),
    "dequeue": ("enqueue", "enqueue_many"),
    "dequeue_many": ("enqueue", "enqueue_many"),
    "dequeue_up_to": ("enqueue", "enqueue_many"),
    "enqueue": ("dequeue", "dequeue_many", "dequeue_up_to"),
}
_DOES = {
    "get": "puts anything in",
    "put": "takes anything out",
    "wait": "sets or notifies it",
    "wait_for": "notifies it",
    "join": "calls task_done()",
    "acquire": "releases it",
    "dequeue": "puts anything in",
    "dequeue_many": "puts anything in",
    "dequeue_up_to": "puts anything in",
    "enqueue": "takes anything out",
}
# Whose methods these are: of other classes nothing is claimed.
_CLASSES = frozenset({
    "Event", "Condition", "Semaphore", "BoundedSemaphore", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue",
    "JoinableQueue", "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue",
})  # fmt: skip
_METHODS = frozenset(_ENDED_BY) | {method for methods in _ENDED_BY.values() for method in methods}


class Ender(NamedTuple):
    """A line that could end the wait."""

    file: str
    line: int
    function: str  # it stands in; "<module>"
    call: str  # "items.put()"

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Awaited(NamedTuple):
    call: str  # "items.get()"
    ended_by: str  # "items.put()"
    does: str  # what would end it: "puts anything in"
    enders: tuple[Ender, ...]
    is_known: bool  # what it is, and that nobody else has it under another name
    parties: int | None  # of a Barrier: how many must come


def awaited(crash: Crash, line: Frame | None) -> Awaited | None:
    """None where the line does not say it, or more than one thing could be meant."""
    if line is None:
        return None
    calls = [call for call in _calls(crash.sources.get(line.file or "", "")) if call.node.lineno == line.line]
    waits = [call for call in calls if call.method in _DOES and (line.column in (None, call.node.col_offset))]
    if len(waits) != 1:
        return None
    wait = waits[0]
    enders = tuple(
        Ender(path, call.node.lineno, call.within, f"{call.receiver}.{call.method}()")
        for path, text in crash.sources.items()
        for call in _calls(text)
        if call.method in _ENDED_BY[wait.method] and _same(call.receiver, wait.receiver)
    )
    name = _last(wait.receiver)
    handed_on = any(_hands_on(text, name) for text in crash.sources.values())
    made = [call for text in crash.sources.values() for call in _made(text, name)]
    classes = {_named(call.func) for call in made}
    parties = made[0].args[0] if classes == {"Barrier"} and made[0].args else None
    return Awaited(
        f"{wait.receiver}.{wait.method}()",
        f"{wait.receiver}.{_ENDED_BY[wait.method][0]}()",
        _DOES[wait.method],
        enders,
        len(classes) == 1 and classes <= _CLASSES and not handed_on,
        parties.value if isinstance(parties, ast.Constant) and isinstance(parties.value, int) else None,
    )


def is_reached(crash: Crash, ender: Ender) -> bool:
    """Some thread is inside of the function that could end the wait; the module's own code always may be."""
    if ender.function == "<module>":
        return True
    own = (frame for thread in crash.threads for frame in thread.frames if frame.kind == "python" and is_own(frame))
    return any(frame.function.rpartition(".")[2] == ender.function for frame in own)


def mentions(trees: Collection[ast.AST]) -> dict[int, set[int]]:
    """What a report keeps of its sources, so that who ends a wait can be told: by the place of each tree, the lines
    that name what is waited for anywhere."""
    names = {
        _last(ast.unparse(node.func.value))
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DOES
    }
    return {
        at: {
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute) and _named(node) in names
        }
        for at, tree in enumerate(trees)
    }


class _Call(NamedTuple):
    node: ast.Call
    receiver: str
    method: str
    within: str


def _calls(text: str) -> Iterator[_Call]:
    tree = parse(text) if text else None
    if tree is None:
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            inside = [each for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
            within = max(inside, key=lambda each: each.lineno).name if inside else "<module>"
            receiver = ast.unparse(node.func.value)
            if receiver.replace(".", "").isidentifier():
                yield _Call(node, receiver, node.func.attr, within)


def _made(text: str, name: str) -> Iterator[ast.Call]:
    """The calls whose result is given this name."""
    tree = parse(text) if name in text else None
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from _results(targets, node.value, name)


def _results(targets: Sequence[ast.expr], value: ast.expr, name: str) -> Iterator[ast.Call]:
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for each, its_value in zip(target.elts, value.elts, strict=False):
                yield from _results([each], its_value, name)
        elif _named(target) == name and isinstance(value, ast.Call):
            yield value


def _hands_on(text: str, name: str) -> bool:
    """It is used otherwise than by calling its methods: as an argument, in a list, under another name."""
    tree = parse(text) if name in text else None
    for parent in ast.walk(tree) if tree else ():
        for child in ast.iter_child_nodes(parent):
            used = isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Load)
            if used and _named(child) == name and not isinstance(parent, ast.Attribute):
                return True
    return False


def _same(one: str, other: str) -> bool:
    """`self.items` here may be `loader.items` there."""
    return _last(one) == _last(other)


def _last(expression: str) -> str:
    return expression.rpartition(".")[2]


def _named(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
