"""What a function does on each of its paths: statements are followed, and what happens becomes events for the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from faultlens.custom_op.check.interpret import calls, declarations, memory_calls
from faultlens.custom_op.check.interpret.events import Event, Kind, Place
from faultlens.custom_op.check.interpret.expressions import evaluate
from faultlens.custom_op.check.interpret.lambdas import has_callback
from faultlens.custom_op.check.interpret.state import MOST_STATES, Held, State, join
from faultlens.custom_op.check.interpret.statements import STATEMENTS
from faultlens.custom_op.check.interpret.symbols import CONTEXT, UNKNOWN, Symbol, number
from faultlens.custom_op.check.syntax.functions import Class, Function, parameters_of
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.syntax.types import is_plain

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.unit import Unit

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
    def __init__(self, unit: Unit, owner: Class | None = None, op: Op | None = None) -> None:
        self.unit, self.owner, self.op = unit, owner, op
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
        self._choices = Choices(())

    # -------------------------------------------------------------------------------------- functions

    def follow(self, function: Function, state: State) -> list[tuple[State, Symbol]]:
        """A function that is called from outside: its parameters are whatever they are."""
        for parameter in function.parameters:
            known = CONTEXT if "Context" in parameter.type or "Construction" in parameter.type else None
            if declarations.CONTAINERS.search(parameter.type) and "*" not in parameter.type:
                known = ("vec", -len(state.variables) - 1, "")
            state.variables[parameter.name] = known or ("param", parameter.name)
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
        values = [evaluate(self, each, state) for each in value.children]
        if self.owner is not None and name in self.owner.members:
            state.members[name] = values[0] if values else ("int", 0)
            declarations.escape(state, state.members[name])

    @property
    def function(self) -> Function:
        return self.frames[-1].function

    @property
    def at_root(self) -> bool:
        return len(self.frames) == 1

    def member(self, name: str) -> Symbol:
        """Of the class whose function is followed; those of other classes have its name before them."""
        owner = self.owner.name if self.owner is not None else ""
        return ("member", name if owner == self.root_owner else f"{owner}.{name}")

    # ------------------------------------------------------------------------------------ expressions

    def evaluate(self, node: Node | None, state: State) -> Symbol:
        """For the modules that `expressions` imports."""
        return evaluate(self, node, state)

    def call(self, node: Node, state: State, write: str = "") -> Symbol:
        return calls.call(self, node, state, write)

    def made(self, kind: str, values: list[Symbol], node: Node, state: State, *, listed: bool = False) -> Symbol:
        return declarations.made(self, kind, values, node.start, node, state, listed=listed)

    def new(self, node: Node, state: State) -> Symbol:
        """new T(…), new T[n]."""
        kind, declarator = node.get("type"), node.get("declarator")
        given = node.get("arguments")
        values = [evaluate(self, each, state) for each in given.children] if given else []
        symbol: Symbol = ("heap", node.start, kind.text if kind else "")
        length = declarator.get("length") if declarator is not None else None
        size = evaluate(self, length, state) if length is not None else number(1)
        self.hand_over(values, state)
        if node.get("placement") is not None:
            return UNKNOWN
        self.note("size", node, state, on=symbol, by=(size,), name="new")
        if given is not None or not is_plain(symbol[2]):  # new float[n]() sets all to 0
            state.written |= {symbol}
        state.held[symbol] = Held("new", node)
        state.shapes[symbol] = size
        return symbol

    def hand_over(self, values: list[Symbol], state: State) -> None:
        """An object is made of them: it may keep them, and call the callback later."""
        for value in values:
            declarations.escape(state, value)
            if value == ("param", self.callback) or (value[0] == "lambda" and has_callback(self, value)):
                state.handed = True

    def delete(self, node: Node, state: State) -> Symbol:
        value = evaluate(self, node.children[-1], state) if node.children else UNKNOWN
        memory_calls.give_back(self, node, state, value, "delete")
        return UNKNOWN

    def function_value(self, node: Node) -> Symbol:
        declarator, body = node.get("declarator"), node.get("body")
        if body is None:
            return UNKNOWN
        parameters = parameters_of(declarator) if declarator is not None else ()
        self.lambdas.setdefault(node.start, Function("lambda", node, body, parameters, "auto"))
        return ("lambda", node.start)

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
        place = Place.of(state, self.function, self.parallel, self.tries > 0, self.loops > 0, self.calls)
        self.events.append(Event(kind, node, place, on, tuple(by), name, detail, write))

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
                if attempt.possible:
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

    # ------------------------------------------------------------------------------------- statements

    def statement(self, node: Node, states: list[State]) -> list[State]:
        self.steps += len(states)
        if self.steps > MOST_STEPS:
            raise TooManyPathsError
        handler = STATEMENTS.get(node.kind)
        if handler is not None and states:
            states = handler(self, node, states)
        return join([state for state in states if state.possible], MOST_STATES)

    def block(self, nodes: Iterable[Node], states: list[State]) -> list[State]:
        for node in nodes:
            if not states:
                break
            states = self.statement(node, states)
        return states


def _few(returns: list[tuple[State, Symbol]]) -> list[tuple[State, Symbol]]:
    """Ways that end with the same value and hold the same are one."""
    if len(returns) <= 8:
        return returns
    groups: dict[object, list[tuple[State, Symbol]]] = {}
    for state, value in returns:
        groups.setdefault((state.key, value), []).append((state, value))
    return [(join([state for state, _ in group], 1)[0], group[0][1]) for group in groups.values()][:MOST_STATES]
