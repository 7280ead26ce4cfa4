"""What the methods of the containers of C++ do."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Element, Length, Pointer, Vector
from faultlens.custom_op.check.interpret.callbacks import hand_over
from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import element
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import ONE, UNKNOWN, ZERO, Binary, Symbol
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
    hand_over(walker, this.values(walker, state), state)
    if isinstance(this.on, Vector):
        state.shapes[this.on] = Length(this.on.changed_at(this.node.start))
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
    return known if known is not None else Length(this.on)


def _begin(_: Walker, this: Call, __: State) -> Symbol:
    return Pointer(this.on, ZERO, _element_type(this.on))


def _end(walker: Walker, this: Call, state: State) -> Symbol:
    return Pointer(this.on, _size(walker, this, state), _element_type(this.on))


def _element_type(container: Symbol) -> str:
    return container.type if isinstance(container, Vector) else ""


def _end_element(walker: Walker, this: Call, state: State) -> Symbol:
    index: Symbol = ZERO if this.name == "front" else Binary("-", Length(this.on), ONE)
    return element(walker, this.node, state, this.on, [index])


def _checked_element(walker: Walker, this: Call, state: State) -> Symbol:
    """v.at(i) throws where v[i] reads what is not there."""
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=this.on, by=values)
    return Element(this.on, values[0] if values else UNKNOWN, _element_type(this.on))


CONTAINER: dict[str, Handler] = {
    **dict.fromkeys(("resize", "reserve", "assign"), _resize),
    **dict.fromkeys(("push_back", "emplace_back", "insert", "emplace", "clear", "pop_back", "erase", "swap"), _grow),
    "size": _size,
    "data": _begin,
    "begin": _begin,
    "end": _end,
    "empty": lambda walker, this, state: Binary("==", _size(walker, this, state), ZERO),
    "front": _end_element,
    "back": _end_element,
    "at": _checked_element,
}
