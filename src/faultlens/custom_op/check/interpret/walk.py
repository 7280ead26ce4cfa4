"""The interpreter's core: follows statements along each path, forks where calls can end in several ways, and records
events for the rules. What each kind of statement and expression does is told by the handlers that it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from faultlens.custom_op.check.interpret.buffer_symbols import Vector
from faultlens.custom_op.check.interpret.events import Event, Kind, ProgramPoint
from faultlens.custom_op.check.interpret.program import Program
from faultlens.custom_op.check.interpret.state import MOST_STATES, State, join
from faultlens.custom_op.check.interpret.symbols import CONTEXT, UNKNOWN, ZERO, Member, Param, Symbol
from faultlens.custom_op.check.syntax.functions import Class, Function
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.syntax.types import CONTAINERS

MOST_STEPS = 40_000  # statements of one root
Value = TypeVar("Value")


class TooManyPathsError(Exception):
    """The function has more paths than are worth following."""


@dataclass
class Frame:
    """A call that is being followed."""

    function: Function
    returns: list[tuple[State, Symbol]] = field(default_factory=list)
    breaks: list[list[State]] = field(default_factory=list)
    continues: list[list[State]] = field(default_factory=list)


@dataclass
class Choices:
    """The decisions of one attempt: the statement is tried again for each that was not taken."""

    taken: tuple[int, ...]
    ways: list[int] = field(default_factory=list)
    calls: int = 0
    known: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def choose(self, ways: int) -> int:
        at = len(self.ways)
        self.ways.append(ways)
        if at < len(self.taken):
            return self.taken[at]
        self.taken = (*self.taken, 0)
        return 0


class Walker:
    def __init__(
        self,
        handlers: Handlers,
        program: Program,
        constant: Callable[[str], Symbol | None],
        owner: Class | None = None,
        op: Op | None = None,
    ) -> None:
        self.program, self.owner, self.op = program, owner, op
        self.constant = constant  # the value of a named constant
        self.root_owner = owner.name if owner is not None else ""
        self.deferred = 0  # lambdas that may run at another time
        self.events: list[Event] = []
        self.frames: list[Frame] = []
        self.calls: tuple[Node, ...] = ()
        self.lambdas: dict[int, Function] = {}
        self.ends: list[State] = []
        self.callback = ""  # the name of what an asynchronous kernel must call
        self.parallel: Node | None = None  # the lambda that other threads run
        self.shared: frozenset[str] = frozenset()  # variables from outside of it
        self.tries = 0
        self.loops = 0
        self.steps = 0
        self._handlers = handlers
        self._choices = Choices(())

    # -------------------------------------------------------------------------------------- functions

    def follow(self, function: Function, state: State) -> list[tuple[State, Symbol]]:
        """A function that is called from outside: its parameters are whatever they are."""
        for parameter in function.parameters:
            known: Symbol = Param(parameter.name)
            if CONTAINERS.search(parameter.type) and "*" not in parameter.type:
                known = Vector(-len(state.variables) - 1, "")
            elif "Context" in parameter.type or "Construction" in parameter.type:
                known = CONTEXT
            state.variables[parameter.name] = known
            state.types[parameter.name] = parameter.type
        return self.run(function, state)

    def run(self, function: Function, state: State) -> list[tuple[State, Symbol]]:
        """All ways to leave it, with what is returned. A lambda sees the variables around it."""
        frame = Frame(function)
        self.frames.append(frame)
        try:
            for name, value in function.initial:
                self._initial(name, value, state)
            for end in self.statement(function.body, [state]):
                self.leave(end, UNKNOWN, "end", function.body)
        finally:
            self.frames.pop()
        return _few(frame.returns)

    def leave(self, state: State, value: Symbol, how: str, node: Node) -> None:
        self.frames[-1].returns.append((state, value))
        if len(self.frames) == 1:
            self.note("exit", node, state, name=how)

    def _initial(self, name: str, value: Node, state: State) -> None:
        values = [self.evaluate(each, state) for each in value.children]
        if self.owner is not None and name in self.owner.members:
            state.members[name] = values[0] if values else ZERO
            state.escape(state.members[name])

    @property
    def function(self) -> Function:
        return self.frames[-1].function

    @property
    def at_root(self) -> bool:
        return len(self.frames) == 1

    def member(self, name: str) -> Member:
        """Of the class whose function is followed; those of other classes have its name before them."""
        owner = self.owner.name if self.owner is not None else ""
        return Member(name if owner == self.root_owner else f"{owner}.{name}")

    # ------------------------------------------------------------------------ expressions and statements

    def evaluate(self, node: Node | None, state: State) -> Symbol:
        if node is None:
            return UNKNOWN
        handler = self._handlers.expressions.get(node.kind)
        if handler is not None:
            return handler(self, node, state)
        for child in node.children:
            self.evaluate(child, state)
        return UNKNOWN

    def assign_call(self, node: Node, state: State, operator: str) -> None:
        """f(i) = …: what the call gives is written to."""
        self._handlers.assign_call(self, node, state, operator)

    def statement(self, node: Node, states: list[State]) -> list[State]:
        self.steps += len(states)
        if self.steps > MOST_STEPS:
            raise TooManyPathsError
        handler = self._handlers.statements.get(node.kind)
        if handler is not None and states:
            states = handler(self, node, states)
        return join([state for state in states if state.feasible], MOST_STATES)

    def block(self, nodes: Iterable[Node], states: list[State]) -> list[State]:
        for node in nodes:
            if not states:
                break
            states = self.statement(node, states)
        return states

    # ----------------------------------------------------------------------------------------- events

    def note(
        self,
        kind: Kind,
        node: Node,
        state: State,
        on: Symbol = UNKNOWN,
        by: Iterable[Symbol] = (),
        name: str = "",
        detail: str = "",
        write: bool = False,
    ) -> None:
        if not self.frames:  # the value of a constant
            return
        point = ProgramPoint.of(state, self.function, self.parallel, self.tries > 0, self.loops > 0, self.calls)
        self.events.append(Event(kind, node, point, on, tuple(by), name, detail, write))

    # ---------------------------------------------------------------------------------------- choices

    def fork(self, state: State, action: Callable[[State], Value]) -> list[tuple[State, Value]]:
        """The action, once for each of the ways that calls in it may go."""
        outer, found, known = self._choices, [], {}  # type: ignore[var-annotated]
        pending: list[tuple[int, ...]] = [()]
        try:
            while pending and len(found) < MOST_STATES:
                prefix = pending.pop()
                self._choices = Choices(prefix, known=known)
                attempt = state.copy()
                value = action(attempt)
                if attempt.feasible:
                    found.append((attempt, value))
                taken, ways = self._choices.taken, self._choices.ways
                for at in range(len(prefix), len(ways)):
                    pending += [(*taken[:at], other) for other in range(1, ways[at])]
        finally:
            self._choices = outer
        return found

    def choose(self, ways: int) -> int:
        return self._choices.choose(ways)

    def once(self, node: Node, make: Callable[[], Value]) -> Value:
        """What is costly is done once for all attempts that came the same way to the same call."""
        choices = self._choices
        choices.calls += 1
        key = (*choices.taken[: len(choices.ways)], -1, choices.calls, node.start)
        if key not in choices.known:
            choices.known[key] = make()
        value: Value = choices.known[key]
        return value


StatementHandler = Callable[[Walker, Node, list[State]], list[State]]
ExpressionHandler = Callable[[Walker, Node, State], Symbol]


@dataclass(frozen=True)
class Handlers:
    """What the kinds of statements and expressions do, by the name that the parser gives them."""

    statements: Mapping[str, StatementHandler]
    expressions: Mapping[str, ExpressionHandler]
    assign_call: Callable[[Walker, Node, State, str], object]  # with the operator of the assignment


def _few(returns: list[tuple[State, Symbol]]) -> list[tuple[State, Symbol]]:
    """Ways that end with the same value and hold the same are one."""
    if len(returns) <= 8:
        return returns
    groups: dict[object, list[tuple[State, Symbol]]] = {}
    for state, value in returns:
        groups.setdefault((state.key, value), []).append((state, value))
    return [(join([state for state, _ in group], 1)[0], group[0][1]) for group in groups.values()][:MOST_STATES]
