"""Call summaries: the states in which a function of the same source ends, with what it returns, for its caller."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import AddressOfName
from faultlens.custom_op.check.interpret.casts import narrowed
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Param, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.functions import Function
from faultlens.custom_op.check.syntax.syntax import Node

DEEPEST = 5  # calls within calls


def summarize(
    walker: Walker, node: Node, function: Function, values: list[Symbol], state: State
) -> list[tuple[State, Symbol]]:
    """All ways through the function, as its caller sees them."""
    inner = state.copy()
    inner.variables, inner.types, inner.uninitialized, inner.references, inner.invalidated = (
        {},
        {},
        frozenset(),
        {},
        frozenset(),
    )
    addressed: dict[str, str] = {}  # variables of the caller that it writes to, and what they are called inside
    for number, parameter in enumerate(function.parameters):
        value: Symbol = values[number] if number < len(values) else Param(parameter.name)
        if isinstance(value, AddressOfName) and not value.name.startswith("this."):
            inside = f"{value.name}^{len(walker.frames)}"
            addressed[value.name] = inside
            inner.variables[inside] = state.variables.get(value.name, UNKNOWN)
            value = AddressOfName(inside)
        narrowed(walker, node, state, value, parameter.type)
        inner.variables[parameter.name] = value
        inner.types[parameter.name] = parameter.type
    before = walker.calls, walker.loops, walker.owner
    walker.calls, walker.loops = (*walker.calls, node), 0
    elsewhere = function.of_class in walker.program.classes and not _is_own(walker, function.of_class)
    if elsewhere:
        walker.owner, inner.members = walker.program.classes[function.of_class], {}
    try:
        ends = walker.run(function, inner)
    finally:
        walker.calls, walker.loops, walker.owner = before
    if elsewhere:
        for end, _ in ends:
            end.members = dict(state.members)
    found = [(_back(state, end, addressed), value) for end, value in ends]
    for after, _ in found:
        if after.failed is not None and state.failed is None:
            after.returned_from = node
    return found


def _is_own(walker: Walker, class_name: str) -> bool:
    """The class that is followed, or one of its bases."""
    owner = walker.owner
    while owner is not None:
        if owner.name == class_name:
            return True
        owner = next((walker.program.classes[base] for base in owner.bases if base in walker.program.classes), None)
    return False


def _back(before: State, end: State, addressed: dict[str, str]) -> State:
    """What the caller knows after the call."""
    after = end.copy()
    after.variables = {**before.variables, **{name: end.variables[inside] for name, inside in addressed.items()}}
    after.types, after.locks = dict(before.types), before.locks
    after.uninitialized, after.references, after.invalidated = (
        before.uninitialized - set(addressed),
        dict(before.references),
        before.invalidated,
    )
    return after


def apply(walker: Walker, ends: list[tuple[State, Symbol]], state: State, hidden: list[str] | None = None) -> Symbol:
    """One of the ways that a call may end becomes what is known."""
    if not ends:
        state.feasible = False
        return UNKNOWN
    end, value = ends[walker.choose(len(ends)) if len(ends) > 1 else 0]
    outer, types = state.variables, state.types
    state.__dict__.update(end.copy().__dict__)
    for name in hidden or ():
        for now, before in ((state.variables, outer), (state.types, types)):
            now.pop(name, None)
            if name in before:
                now[name] = before[name]  # type: ignore[assignment]
    return value
