"""The abstract state at one point of one path: symbolic values of variables, the path condition, what is held."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from faultlens.custom_op.check.interpret.buffer_symbols import Array, Input, Memory, Output, Pointer, Temporary
from faultlens.custom_op.check.interpret.call_symbols import (
    SUCCESS,
    Braces,
    ContextStatus,
    ErrorStatus,
    File,
    Guard,
    Ok,
    Status,
    SuccessStatus,
)
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.symbols import (
    NULL,
    UNKNOWN,
    Binary,
    Bool,
    Member,
    Not,
    Symbol,
    Varying,
    is_binary,
)
from faultlens.custom_op.check.syntax.syntax import Node

ALL = Output("*")  # whatever outputs there are
MOST_STATES = 16  # kept apart at one point


class Fact(NamedTuple):
    """One condition of the path condition: it holds here, or does not."""

    condition: Symbol
    holds: bool
    loop: bool = False  # it holds because a loop runs


class Held(NamedTuple):
    """Memory, a thread or a reference that somebody must give back."""

    what: str  # "new", "malloc", "thread", "reference"
    node: Node
    state: str = "live"  # "freed", "escaped"
    at: Node | None = None  # where it was freed


@dataclass
class State:
    """Values are never changed in place, so that a copy is cheap, and an event may keep what it saw."""

    variables: dict[str, Symbol] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    members: dict[str, Symbol] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()  # the path condition
    shapes: dict[Symbol, Symbol] = field(default_factory=dict)  # buffer -> shape or number of elements
    outputs: frozenset[Symbol] = frozenset()  # those that were set
    written: frozenset[Symbol] = frozenset()  # buffers
    held: dict[Symbol, Held] = field(default_factory=dict)
    locks: tuple[tuple[Symbol, Node], ...] = ()
    manual_locks: tuple[Symbol, ...] = ()  # locks that no object gives back
    callback_calls: int = 0  # calls of the callback
    callback_escaped: bool = False  # the callback went elsewhere
    failed: Node | None = None  # where a status was set, though the function goes on
    failed_condition: Symbol = UNKNOWN  # what was found to be wrong there
    returned_from: Node | None = None  # the call that came back from there
    branches: tuple[Node, ...] = ()  # branches that were taken
    uninitialized: frozenset[str] = frozenset()  # variables that were declared and not set
    references: dict[str, Symbol] = field(default_factory=dict)  # variables that point into a container
    invalidated: frozenset[str] = frozenset()  # those whose container has moved its elements since
    feasible: bool = True

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            types=dict(self.types),
            members=dict(self.members),
            shapes=dict(self.shapes),
            held=dict(self.held),
            references=dict(self.references),
        )

    @property
    def key(self) -> tuple[object, ...]:
        """States that differ only in values and facts may be joined."""
        held = frozenset((symbol, each.state) for symbol, each in self.held.items())
        nulls = frozenset(name for name, value in self.variables.items() if value == NULL)
        locks = tuple(lock for lock, _ in self.locks)
        failed = self.failed.start if self.failed else None
        return (held, nulls, locks, self.manual_locks, self.callback_calls, self.callback_escaped, failed, self.outputs)

    def assume(self, condition: Symbol, holds: bool, loop: bool = False) -> None:
        """Takes the condition for true (or not); `feasible` is lost where that contradicts what is known."""
        match condition:
            case Not(value):
                self.assume(value, not holds, loop)
            case Binary("&&" | "||", left, right) if holds is (condition.sign == "&&"):
                self.assume(left, holds, loop)
                self.assume(right, holds, loop)
            case Bool(value):
                self.feasible &= value is holds
            case Ok(ErrorStatus() | SuccessStatus()):
                self.feasible &= (condition.status == SUCCESS) is holds
            case Ok(ContextStatus()):  # ctx->status().ok()
                self.feasible &= (self.failed is None) is holds
            case _:
                missing = _missing(condition, holds)
                if missing is not None and missing in self.held:
                    self.held = {symbol: held for symbol, held in self.held.items() if symbol != missing}
                elif (known := _null_test(condition)) is not None:
                    self.feasible &= known is holds
                self._remember(condition, holds, loop)

    def escape(self, value: Symbol) -> None:
        """Somebody else has it now, and may give it back."""
        for symbol in (value, *value.operands()) if isinstance(value, (Guard, Braces, Pointer)) else (value,):
            self.keep(symbol)

    def keep(self, symbol: Symbol) -> None:
        """What was stored somewhere is somebody else's to give back."""
        held = self.held.get(symbol)
        if held is not None and held.state == "live":
            self.held[symbol] = held._replace(state="escaped")

    def _remember(self, condition: Symbol, holds: bool, loop: bool) -> None:
        if any(fact.condition == condition and fact.holds is not holds for fact in self.facts):
            self.feasible = False
        fact = Fact(condition, holds, loop)
        if fact not in self.facts:
            self.facts = (*self.facts, fact)

    def moved(self, container: Symbol) -> None:
        """The elements of a container may be elsewhere now."""
        self.invalidated |= {name for name, owner in self.references.items() if owner == container}

    def forget(self, symbol: Symbol) -> None:
        """Facts about a variable that changed."""
        self.facts = tuple(fact for fact in self.facts if symbol not in parts(fact.condition))


def join(states: list[State], most: int) -> list[State]:
    """At most so many states: those that hold the same things become one that knows what all know."""
    if len(states) <= most:
        return states
    groups: dict[tuple[object, ...], State] = {}
    for state in states:
        known = groups.get(state.key)
        groups[state.key] = _joined(known, state) if known else state
    found = list(groups.values())
    return found if len(found) <= most else found[:most]


def _joined(left: State, right: State) -> State:
    made = left.copy()
    made.variables = {
        name: value if right.variables.get(name) == value else Varying(name, 0)
        for name, value in left.variables.items()
    }
    made.members = {
        name: value if right.members.get(name) == value else Member(name) for name, value in left.members.items()
    }
    made.facts = tuple(fact for fact in left.facts if fact in right.facts)
    made.shapes = {symbol: shape for symbol, shape in left.shapes.items() if right.shapes.get(symbol) == shape}
    made.written = left.written & right.written
    made.uninitialized = left.uninitialized | right.uninitialized
    return made


def _missing(condition: Symbol, holds: bool) -> Symbol | None:
    """What there is not if the condition holds (or not): a file that was not opened, a resource that was not found."""
    match condition:
        case Ok(Status(_, result)) if not holds:
            return result
        case File() if not holds:
            return condition
        case Binary("==" | "!=", left, right) if NULL in (left, right) and (condition.sign == "==") is holds:
            return next((side for side in (left, right) if isinstance(side, File)), None)
    return None


def _null_test(condition: Symbol) -> bool | None:
    """Whether a comparison with nullptr is decided."""
    if is_binary(condition, "==", "!=") and NULL in (condition.left, condition.right):
        other = condition.right if condition.left == NULL else condition.left
        if other == NULL:
            return condition.sign == "=="
        if isinstance(other, (Memory, Input, Output, Temporary, Pointer)):
            return condition.sign == "!="
    if condition == NULL:
        return False
    return True if isinstance(condition, (Input, Output, Temporary, Pointer, Array)) else None
