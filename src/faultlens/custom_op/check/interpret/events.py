"""What a function does on a path that a rule may want to know of, and what was known then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from faultlens.custom_op.check.interpret.state import Fact, Held, State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Symbol
from faultlens.custom_op.check.syntax.functions import Function
from faultlens.custom_op.check.syntax.syntax import Node

Kind = Literal[
    "view",  # x.flat<T>(): on = tensor, name = method, detail = type, by = (rank,)
    "raw",  # x.data(), tensor_data(): on = tensor
    "cast",  # name = reinterpret_cast …, detail = type, on = what
    "dim",  # x.dim_size(k): on = tensor, by = (k,)
    "index",  # element read or written: on = buffer, by = indices, name = "()" or "[]"
    "divide",  # by = (divisor,), name = "/" or "%", detail = type of the division
    "multiply",  # on, by = factors, detail = type
    "narrow",  # a product becomes a smaller integer: by = (product,), detail = type
    "size",  # a number of elements for: name = "vector", "new", "malloc", "shape", "stack", "resize"; by = (size,)
    "call",  # name, by = arguments, on = object
    "assign",  # to something that outlives the call: name, detail = "member" | "static" | "global" | "captured"
    "free",  # on = heap
    "touch",  # on = heap that was freed
    "null",  # use of a null pointer: on = where it is from
    "ignored",  # a status that nobody looks at: name = function
    "lock",  # on = mutex
    "throw",  # name = what throws
    "exit",  # name = "return", "end", "requires", "throw"
    "copy",  # memcpy …: on = target, by = (source, bytes)
    "unset",  # a variable that was never set: name
    "recursion",  # name = function
    "parallel",  # a lambda handed to other threads: name
    "output",  # allocate_output …: by = (number,), name = method
]


@dataclass(frozen=True, eq=False)
class ProgramPoint:
    """Where on a path an event happens, and the abstract state there."""

    function: Function
    facts: tuple[Fact, ...]
    shapes: dict[Symbol, Symbol]
    outputs: frozenset[Symbol]
    written: frozenset[Symbol]
    held: dict[Symbol, Held]
    locks: tuple[tuple[Symbol, Node], ...]
    manual_locks: tuple[Symbol, ...]
    failed: Node | None
    failed_condition: Symbol
    returned_from: Node | None
    branches: tuple[Node, ...]
    callback_calls: int
    callback_escaped: bool
    parallel: Node | None  # the lambda that runs in several threads
    in_try: bool
    in_loop: bool
    callers: tuple[Node, ...]  # calls that led here

    @classmethod
    def of(
        cls,
        state: State,
        function: Function,
        parallel: Node | None,
        in_try: bool,
        in_loop: bool,
        callers: tuple[Node, ...],
    ) -> ProgramPoint:
        return cls(
            function, state.facts, dict(state.shapes), state.outputs, state.written, dict(state.held), state.locks,
            state.manual_locks, state.failed, state.failed_condition, state.returned_from, state.branches,
            state.callback_calls, state.callback_escaped, parallel, in_try, in_loop, callers,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Event:
    kind: Kind
    node: Node
    point: ProgramPoint
    on: Symbol = UNKNOWN
    by: tuple[Symbol, ...] = ()
    name: str = ""
    detail: str = ""
    write: bool = False
