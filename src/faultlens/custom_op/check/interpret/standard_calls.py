"""What functions of C and C++ do that matter here: memory, values, locks, references, statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret import memory_calls
from faultlens.custom_op.check.interpret.declarations import escape
from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import outlives
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Symbol

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker


# -------------------------------------------------------------------------------------------- values


def _limited(walker: Walker, this: Call, state: State) -> Symbol:
    return ({"clamp": "clamp", "Clamp": "clamp"}.get(this.name, this.name), *this.values(walker, state))


def _most(walker: Walker, this: Call, state: State) -> Symbol:
    """std::max_element(begin, end): somewhere between the two, or the end where there is nothing."""
    values = this.values(walker, state)
    if len(values) < 2 or values[0][0] != "ptr" or values[1][:2] != values[0][:2]:
        return ("call", this.name, *values)
    begin, end = values[:2]
    found: Symbol = ("ptr", begin[1], ("most", this.name, begin[2], end[2]), begin[3])
    return ("pair", found, found) if this.name == "minmax_element" else found


def _first(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if values and values[0][0] == "param" and values[0][1] == walker.callback:
        state.handed = True
    return values[0] if values else UNKNOWN


def _thrower(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name=this.name, by=values)
    return ("call", this.name, *values)


def _ends(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("call", this.node, state, name=this.name, by=this.values(walker, state))
    state.possible = False
    return UNKNOWN


def _nullable(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    return ("maybe", this.name, *values)


FUNCTIONS: dict[str, Handler] = {
    **memory_calls.FUNCTIONS,
    **dict.fromkeys(("min", "max", "clamp", "Clamp"), _limited),
    **dict.fromkeys(("min_element", "max_element", "minmax_element"), _most),
    **dict.fromkeys(
        ("move", "forward", "SubtleMustCopy", "as_const", "ref", "cref", "ValueOrDie", "to_address"), _first
    ),
    **dict.fromkeys(("stoi", "stol", "stoll", "stoul", "stoull", "stof", "stod"), _thrower),
    **dict.fromkeys(("abort", "exit", "_exit", "terminate", "quick_exit"), _ends),
    **dict.fromkeys(("getenv", "strchr", "strstr", "strrchr", "dlopen", "dlsym"), _nullable),
}


# --------------------------------------------------------------------------------------- any object


def lock(walker: Walker, this: Call, state: State) -> Symbol:
    mutex = this.on
    if mutex[0] == "lock":  # of a unique_lock
        if this.name in ("unlock", "Unlock"):
            state.locks = tuple(held for held in state.locks if held[0] != mutex[1])
        else:
            state.locks = (*state.locks, (mutex[1], this.node))
        return UNKNOWN
    if this.name in ("lock", "Lock"):
        walker.note("lock", this.node, state, on=mutex, name=this.name)
        state.locks = (*state.locks, (mutex, this.node))
        state.manual = (*state.manual, mutex)
    else:
        state.locks = tuple(held for held in state.locks if held[0] != mutex)
        state.manual = tuple(held for held in state.manual if held != mutex)
    return UNKNOWN


def _ok(_: Walker, this: Call, __: State) -> Symbol:
    status = this.on
    return ("ok-status",) if status == ("ctx-status",) else ("ok", status)


def _joined(_: Walker, this: Call, state: State) -> Symbol:
    symbol = this.on
    if symbol in state.held:
        state.held[symbol] = state.held[symbol]._replace(state="escaped")
    return ("call", this.name, symbol)


def _unref(walker: Walker, this: Call, state: State) -> Symbol:
    memory_calls.give_back(walker, this.node, state, this.on, "Unref")
    return UNKNOWN


def _at(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=this.on, by=values)
    return ("call", "at", this.on, *values)


def _reset(walker: Walker, this: Call, state: State) -> Symbol:
    """p.reset() of a smart pointer frees what it owned."""
    values = this.values(walker, state)
    held = state.held.get(this.on)
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    if held is not None and held.state == "owned":
        state.held[this.on] = held._replace(state="freed", at=this.node)
    for value in values:
        escape(state, value)
    if target is not None and target.text in state.variables and this.on[0] in ("heap", "null"):
        state.variables[target.text] = values[0] if values else UNKNOWN
    elif target is not None:
        outlives(walker, this.node, state, this.on)
    return UNKNOWN


def _substr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="substr", on=this.on, by=values)
    return ("call", "substr", this.on, *values)


def _release(_: Walker, this: Call, __: State) -> Symbol:
    return this.on


def _ignored(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("ignored", this.node, state, on=this.on, name="IgnoreError")
    return UNKNOWN


ANY: dict[str, Handler] = {
    "ok": _ok,
    "join": _joined,
    "detach": _joined,
    "Unref": _unref,
    "at": _at,
    "get": _release,
    "reset": _reset,
    "substr": _substr,
    "IgnoreError": _ignored,
}
