"""A call that is being looked at, and what its known kinds share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from faultlens.custom_op.check.interpret.buffer_symbols import AddressOfName
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Member, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node


@dataclass(frozen=True)
class Call:
    node: Node
    name: str
    given: list[Node]
    types: list[str] = field(default_factory=list)  # template arguments
    object: Symbol | None = None

    @property
    def on(self) -> Symbol:
        """The object whose method it is."""
        return self.object or UNKNOWN

    def values(self, walker: Walker, state: State) -> list[Symbol]:
        return given_values(walker, self.given, state)

    def value(self, walker: Walker, state: State, number: int) -> Symbol:
        return walker.evaluate(self.given[number], state) if number < len(self.given) else UNKNOWN


Handler = Callable[[Walker, Call, State], Symbol]


def given_values(walker: Walker, given: list[Node], state: State) -> list[Symbol]:
    """Arguments of a call. What was not set may be set by it, through a reference."""
    state.uninitialized -= {each.text for each in given if each.kind == "identifier"}
    return [walker.evaluate(each, state) for each in given]


def store(walker: Walker, this: Call, state: State, target: Symbol, value: Symbol) -> None:
    """The function gives a value back through a pointer."""
    if not isinstance(target, AddressOfName):  # somebody else has it, and may write to it
        state.written |= {value}
        return
    name = target.name
    if name.startswith("this."):
        walker.note(
            "assign", this.node, state, on=Member(name[5:]), by=(value,), name=name[5:], detail="member", write=True
        )
        state.members[name[5:]] = value
    else:
        if walker.parallel is not None and name in walker.shared:
            walker.note("assign", this.node, state, by=(value,), name=name, detail="captured", write=True)
        state.variables[name] = value
        state.uninitialized -= {name}
