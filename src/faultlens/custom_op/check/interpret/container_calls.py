"""What the methods of the containers of C++ do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import element
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Symbol, number

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker


def _resize(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    size = values[0] if values else UNKNOWN
    walker.note("size", this.node, state, on=this.on, by=(size,), name=this.name)
    if this.name != "reserve":
        state.shapes[this.on] = size
    state.moved(this.on)
    note_captured(walker, this, state)
    return UNKNOWN


def _grow(walker: Walker, this: Call, state: State) -> Symbol:
    walker.hand_over(this.values(walker, state), state)
    state.shapes[this.on] = ("size", (*this.on, this.node.start))
    state.moved(this.on)
    note_captured(walker, this, state)
    return UNKNOWN


def note_captured(walker: Walker, this: Call, state: State) -> None:
    """A container from outside is changed by a lambda that several threads run."""
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    if walker.parallel is not None and target is not None and target.text in walker.shared:
        walker.note("assign", this.node, state, name=target.text, detail="captured", write=True)


def _size(_: Walker, this: Call, state: State) -> Symbol:
    known = state.shapes.get(this.on)
    return known if known is not None else ("size", this.on)


def _end_element(walker: Walker, this: Call, state: State) -> Symbol:
    index: Symbol = ZERO if this.name == "front" else ("-", ("size", this.on), number(1))
    return element(walker, this.node, state, this.on, [index])


def _checked_element(walker: Walker, this: Call, state: State) -> Symbol:
    """v.at(i) throws where v[i] reads what is not there."""
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=this.on, by=values)
    return ("elem", this.on, values[0] if values else UNKNOWN, this.on[2])


CONTAINER: dict[str, Handler] = {
    **dict.fromkeys(("resize", "reserve", "assign"), _resize),
    **dict.fromkeys(("push_back", "emplace_back", "insert", "emplace", "clear", "pop_back", "erase", "swap"), _grow),
    "size": _size,
    "data": lambda _, this, __: ("ptr", this.on, ZERO, this.on[2]),
    "begin": lambda _, this, __: ("ptr", this.on, ZERO, this.on[2]),
    "end": lambda _, this, state: ("ptr", this.on, state.shapes.get(this.on, ("size", this.on)), this.on[2]),
    "empty": lambda _, this, state: ("==", state.shapes.get(this.on, ("size", this.on)), ZERO),
    "front": _end_element,
    "back": _end_element,
    "at": lambda walker, this, state: _checked_element(walker, this, state),
}
