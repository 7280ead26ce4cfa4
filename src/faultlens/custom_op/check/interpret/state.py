"""What is known at one point of one path: the values of variables, what was checked, what is held."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from faultlens.custom_op.check.interpret.symbols import Symbol, parts
from faultlens.custom_op.check.syntax.syntax import Node

ALL = ("output", "*")  # whatever outputs there are
MOST_STATES = 16  # kept apart at one point


class Fact(NamedTuple):
    """A condition that holds here, or does not."""

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
    facts: tuple[Fact, ...] = ()
    shapes: dict[Symbol, Symbol] = field(default_factory=dict)  # buffer -> shape or number of elements
    outputs: frozenset[Symbol] = frozenset()  # those that were set
    written: frozenset[Symbol] = frozenset()  # buffers
    held: dict[Symbol, Held] = field(default_factory=dict)
    locks: tuple[tuple[Symbol, Node], ...] = ()
    manual: tuple[Symbol, ...] = ()  # locks that no object gives back
    done: int = 0  # calls of the callback
    handed: bool = False  # the callback went elsewhere
    failed: Node | None = None  # where a status was set, though the function goes on
    wrong: Symbol = ("unknown",)  # what was found to be wrong there
    let_go: Node | None = None  # the call that came back from there
    ways: tuple[Node, ...] = ()  # branches that were taken
    unset: frozenset[str] = frozenset()  # variables that were declared and not set
    refers: dict[str, Symbol] = field(default_factory=dict)  # variables that point into a container
    stale: frozenset[str] = frozenset()  # those whose container has moved its elements since
    possible: bool = True

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            types=dict(self.types),
            members=dict(self.members),
            shapes=dict(self.shapes),
            held=dict(self.held),
            refers=dict(self.refers),
        )

    @property
    def key(self) -> tuple[object, ...]:
        """States that differ only in values and facts may be joined."""
        held = tuple(sorted((repr(symbol), each.state) for symbol, each in self.held.items()))
        nulls = tuple(sorted(name for name, value in self.variables.items() if value == ("null",)))
        locks = tuple(repr(lock) for lock, _ in self.locks)
        failed = self.failed.start if self.failed else None
        return (held, nulls, locks, self.manual, self.done, self.handed, failed, self.outputs)

    def assume(self, condition: Symbol, holds: bool, loop: bool = False) -> None:
        """Takes the condition for true (or not); `possible` is lost where that contradicts what is known."""
        kind = condition[0]
        if kind == "!":
            self.assume(condition[1], not holds, loop)
        elif (kind == "&&" and holds) or (kind == "||" and not holds):
            self.assume(condition[1], holds, loop)
            self.assume(condition[2], holds, loop)
        elif kind == "bool":
            self.possible &= condition[1] is holds
        elif kind == "ok" and condition[1][0] in ("error", "okay"):
            self.possible &= (condition[1][0] == "okay") is holds
        elif kind == "ok" and not holds and condition[1][0] == "status" and condition[1][-1] in self.held:
            self.held = {symbol: held for symbol, held in self.held.items() if symbol != condition[1][-1]}
            self._remember(condition, holds, loop)
        elif kind == "ok-status" or condition == ("ok", ("ctx-status",)):  # ctx->status().ok()
            self.possible &= (self.failed is None) is holds
        elif (gone := _without(condition, holds)) is not None and gone in self.held:  # fopen gave nothing
            self.held = {symbol: held for symbol, held in self.held.items() if symbol != gone}
            self._remember(condition, holds, loop)
        elif (known := _null_test(condition)) is not None:
            self.possible &= known is holds
            self._remember(condition, holds, loop)
        else:
            self._remember(condition, holds, loop)

    def _remember(self, condition: Symbol, holds: bool, loop: bool) -> None:
        if any(fact.condition == condition and fact.holds is not holds for fact in self.facts):
            self.possible = False
        fact = Fact(condition, holds, loop)
        if fact not in self.facts:
            self.facts = (*self.facts, fact)

    def moved(self, container: Symbol) -> None:
        """The elements of a container may be elsewhere now."""
        self.stale |= {name for name, owner in self.refers.items() if owner == container}

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
        name: value if right.variables.get(name) == value else ("vary", name, 0)
        for name, value in left.variables.items()
    }
    made.members = {
        name: value if right.members.get(name) == value else ("member", name) for name, value in left.members.items()
    }
    made.facts = tuple(fact for fact in left.facts if fact in right.facts)
    made.shapes = {symbol: shape for symbol, shape in left.shapes.items() if right.shapes.get(symbol) == shape}
    made.written = left.written & right.written
    made.unset = left.unset | right.unset
    return made


def _without(condition: Symbol, holds: bool) -> Symbol | None:
    """What is null if the condition holds (or not): a file that was not opened."""
    if condition[0] == "file":
        return condition if not holds else None
    if condition[0] in ("==", "!=") and ("null",) in condition[1:] and (condition[0] == "==") is holds:
        return next((side for side in condition[1:] if side[0] == "file"), None)
    return None


def _null_test(condition: Symbol) -> bool | None:
    """Whether a comparison with nullptr is decided."""
    sides = condition[1:] if condition[0] in ("==", "!=") else ()
    if len(sides) == 2 and ("null",) in sides:
        other = sides[1] if sides[0] == ("null",) else sides[0]
        if other == ("null",):
            return bool(condition[0] == "==")
        if other[0] in ("heap", "input", "output", "temp", "ptr", "array", "vec"):
            return bool(condition[0] == "!=")
    if condition == ("null",):
        return False
    if condition[0] in ("input", "output", "temp", "ptr", "array"):
        return True
    return None
