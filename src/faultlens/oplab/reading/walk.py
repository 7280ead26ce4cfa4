"""What a function does on each of its paths: statements are followed, and what happens becomes events for the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from faultlens.oplab.reading import calls, declarations, loops, standard_calls
from faultlens.oplab.reading.events import Event, Kind, Place
from faultlens.oplab.reading.expressions import evaluate
from faultlens.oplab.reading.functions import Class, Function, parameters_of
from faultlens.oplab.reading.macros import MACROS
from faultlens.oplab.reading.registered import Op
from faultlens.oplab.reading.state import Held, State, join
from faultlens.oplab.reading.symbols import CONTEXT, UNKNOWN, Symbol, number
from faultlens.oplab.reading.syntax import Node, arguments, as_expression, name_of
from faultlens.oplab.reading.types import is_plain

if TYPE_CHECKING:
    from faultlens.oplab.reading.unit import Unit

STATUSES = ("MakeShape", "BuildTensorShape", "BuildPartialTensorShape", "ReadFileToString", "GetNodeAttr",
            "LookupResource", "LookupOrCreateResource", "HandleFromInput")  # fmt: skip
MOST_STATES = 16  # kept apart at one point
MOST_STEPS = 40_000  # statements of one root
DEEPEST = 5  # calls within calls
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
    is_lambda: bool = False


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
            if value == ("param", self.callback) or (value[0] == "lambda" and calls.has_callback(self, value)):
                state.handed = True

    def delete(self, node: Node, state: State) -> Symbol:
        value = evaluate(self, node.children[-1], state) if node.children else UNKNOWN
        standard_calls.give_back(self, node, state, value, "delete")
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
        handler = _STATEMENTS.get(node.kind)
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


# ------------------------------------------------------------------------------------ one kind each


def _compound(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """What was declared in it is gone behind it; so are the locks that it took."""
    before = [(dict(state.variables), dict(state.types), state.locks) for state in states]
    names = declarations.declared_in(node)
    locks = before[0][2]
    ends = walker.block(node.children, states)
    for end in ends:
        for name in names:
            variables, types, _ = before[0]
            _restore(end.variables, variables, name)
            _restore(end.types, types, name)
            end.unset -= {name} if name not in variables else frozenset()
        end.locks = tuple(lock for lock in end.locks if lock in locks)
    return ends


def _restore(now: dict[str, Any], before: dict[str, Any], name: str) -> None:
    if name in before:
        now[name] = before[name]
    else:
        now.pop(name, None)


def _expression(walker: Walker, node: Node, states: list[State]) -> list[State]:
    if not node.children:
        return states
    inner = node.children[0]
    called = _streamed_to(inner)
    macro = MACROS.get(name_of(called.get("function"))) if called.kind == "call_expression" else None
    if macro is not None:
        return [end for state in states for end in macro(walker, called, arguments(called), state)]
    found = []
    dropped = _dropped(inner)
    for state in states:
        for end, value in walker.fork(state, lambda each: evaluate(walker, inner, each)):
            if dropped.kind == "call_expression" and (value[0] == "status" or _gives_status(walker, dropped)):
                how = name_of(dropped.get("function")) if dropped is inner else "IgnoreError"
                walker.note("ignored", dropped, end, name=how, on=value)
            if inner.kind == "throw_statement":
                continue
            found.append(end)
    return found


def _dropped(node: Node) -> Node:
    """The call of `(void)call()`, `static_cast<void>(call())` and `std::ignore = call()`."""
    kind, left = node.get("type"), node.get("left")
    if node.kind == "cast_expression" and kind is not None and kind.text == "void":
        return node.get("value") or node
    if node.kind == "assignment_expression" and left is not None and left.text in ("std::ignore", "ignore"):
        return node.get("right") or node
    if node.kind == "call_expression" and node.text.startswith("static_cast<void>"):
        return next(iter(arguments(node)), node)
    return node


def _streamed_to(node: Node) -> Node:
    """CHECK(x) of `CHECK(x) << "text"`."""
    while node.kind == "binary_expression" and node.operator == "<<" and (left := node.get("left")) is not None:
        node = left
    return node


def _gives_status(walker: Walker, call: Node) -> bool:
    function = call.get("function")
    if function is None or function.kind not in ("identifier", "qualified_identifier", "template_function"):
        return False
    found = walker.unit.function(name_of(function))
    return name_of(function) in STATUSES if found is None else found.is_status


def _declaration(walker: Walker, node: Node, states: list[State]) -> list[State]:
    kind = node.get("type")
    if kind is not None and kind.kind == "type_identifier" and states and kind.text in states[0].variables:
        return _misread(walker, node, states)
    return [
        end for state in states for end, _ in walker.fork(state, lambda each: declarations.declare(walker, node, each))
    ]


def _misread(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """`y(i) = 0;` looks like a pure virtual function, `y(i) = x;` like a declaration."""
    again = next(as_expression(node).find("expression_statement"), None)
    return _expression(walker, again, states) if again is not None and again.children else states


def _return(walker: Walker, node: Node, states: list[State]) -> list[State]:
    value = node.children[0] if node.children else None
    for state in states:
        for end, returned in walker.fork(state, lambda each: evaluate(walker, value, each)):
            if walker.at_root or walker.function.name == "lambda":  # whoever called has it now
                declarations.escape(end, returned)
            walker.leave(end, returned, "return", node)
    return []


def _if(walker: Walker, node: Node, states: list[State]) -> list[State]:
    clause, then, other = node.get("condition"), node.get("consequence"), node.get("alternative")
    ends: list[State] = []
    for state in states:
        for asked, condition in walker.fork(state, lambda each: _condition(walker, clause, each)):
            for holds, branch in ((True, then), (False, other)):
                taken = asked.copy()
                taken.assume(condition, holds)
                taken.ways = (*taken.ways, branch or node)
                if taken.possible:
                    ends += walker.statement(branch, [taken]) if branch is not None else [taken]
    return ends


def _condition(walker: Walker, clause: Node | None, state: State) -> Symbol:
    if clause is None:
        return UNKNOWN
    initializer = clause.get("initializer")
    if initializer is not None and initializer.children:
        declarations.declare(walker, initializer.children[0], state)
    value = clause.get("value") or (clause if clause.kind != "condition_clause" else None)
    if value is None:
        return UNKNOWN
    if value.kind == "declaration":
        return declarations.declare(walker, value, state)
    return evaluate(walker, value, state)


def _else(walker: Walker, node: Node, states: list[State]) -> list[State]:
    return walker.block(node.children, states)


def _switch(walker: Walker, node: Node, states: list[State]) -> list[State]:
    body, clause = node.get("body"), node.get("condition")
    cases = [child for child in body.children if child.kind == "case_statement"] if body else []
    frame = walker.frames[-1]
    frame.breaks.append([])
    falling: list[State] = []
    begins: list[State] = []
    for state in states:
        for asked, value in walker.fork(state, lambda each: _condition(walker, clause, each)):
            asked.assume(("switch", value), True)
            begins.append(asked)
    for case in cases:
        inner = [child for child in case.children if child not in case.all("value")]
        entered = [replace(begin.copy(), ways=(*begin.ways, case)) for begin in begins]
        falling = walker.block(inner, join(entered + falling, MOST_STATES))
    ends = falling + frame.breaks.pop()
    has_default = any(case.get("value") is None for case in cases)
    return ends if has_default or _all_named(walker, cases) else ends + begins


def _all_named(walker: Walker, cases: list[Node]) -> bool:
    """Every value of an enum has its case."""
    named = {name_of(value) for case in cases if (value := case.get("value")) is not None}
    return any(values <= named for values in walker.unit.enums)


def _break(walker: Walker, _: Node, states: list[State]) -> list[State]:
    if walker.frames[-1].breaks:
        walker.frames[-1].breaks[-1].extend(states)
    return []


def _continue(walker: Walker, _: Node, states: list[State]) -> list[State]:
    if walker.frames[-1].continues:
        walker.frames[-1].continues[-1].extend(states)
    return []


def _try(walker: Walker, node: Node, states: list[State]) -> list[State]:
    body = node.get("body")
    caught = [state.copy() for state in states]
    walker.tries += 1
    try:
        ends = walker.statement(body, states) if body else states
    finally:
        walker.tries -= 1
    for clause in node.children:
        handler = clause.get("body") if clause.kind == "catch_clause" else None
        if handler is not None:
            ends = ends + walker.statement(handler, [state.copy() for state in caught])
    return ends


def _throw(walker: Walker, node: Node, states: list[State]) -> list[State]:
    for state in states:
        walker.note("throw", node, state, name="throw")
    return []


def _either(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """#if … #else … #endif: one of them is compiled."""
    other = node.get("alternative")
    skipped = (*node.all("name"), *node.all("condition"), *node.all("alternative"))
    own = [child for child in node.children if child not in skipped]
    ends = walker.block(own, [state.copy() for state in states])
    return ends + (walker.statement(other, states) if other is not None else states if not own else [])


_STATEMENTS: dict[str, Callable[[Walker, Node, list[State]], list[State]]] = {
    "compound_statement": _compound,
    "expression_statement": _expression,
    "declaration": _declaration,
    "function_definition": _misread,
    "return_statement": _return,
    "if_statement": _if,
    "else_clause": _else,
    "switch_statement": _switch,
    "break_statement": _break,
    "continue_statement": _continue,
    "for_statement": loops.counted,
    "for_range_loop": loops.ranged,
    "while_statement": loops.repeated,
    "do_statement": loops.repeated,
    "try_statement": _try,
    "throw_statement": _throw,
    "labeled_statement": _else,
    "preproc_if": _either,
    "preproc_ifdef": _either,
    "preproc_else": _else,
    "preproc_elif": _either,
}
