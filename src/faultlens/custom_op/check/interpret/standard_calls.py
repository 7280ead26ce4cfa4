"""What functions of C and C++ do that matter here: memory, values, locks, references, statuses."""

from __future__ import annotations

from faultlens.custom_op.check.interpret import memory_calls
from faultlens.custom_op.check.interpret.buffer_symbols import ExtremeIndex, Heap, Pointer
from faultlens.custom_op.check.interpret.call_symbols import Lock, MaybeNull, Ok, Pair, Result
from faultlens.custom_op.check.interpret.callbacks import is_callback
from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import outlives
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Limited, Null, Symbol

# -------------------------------------------------------------------------------------------- values
from faultlens.custom_op.check.interpret.walk import Walker


def _limited(walker: Walker, this: Call, state: State) -> Symbol:
    return Limited(this.name.lower(), tuple(this.values(walker, state)))


def _most(walker: Walker, this: Call, state: State) -> Symbol:
    """std::max_element(begin, end): somewhere between the two, or the end where there is nothing."""
    values = this.values(walker, state)
    match values[:2]:
        case [Pointer() as begin, Pointer() as end] if begin.buffer == end.buffer:
            found = Pointer(begin.buffer, ExtremeIndex(this.name, begin.offset, end.offset), begin.type)
            return Pair(found, found) if this.name == "minmax_element" else found
    return Result(this.name, tuple(values))


def _first(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if values and is_callback(walker, values[0]):
        state.callback_escaped = True
    return values[0] if values else UNKNOWN


def _thrower(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name=this.name, by=values)
    return Result(this.name, tuple(values))


def _ends(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("call", this.node, state, name=this.name, by=this.values(walker, state))
    state.feasible = False
    return UNKNOWN


def _nullable(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    return MaybeNull(this.name, tuple(values))


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
    if isinstance(mutex, Lock):  # of a unique_lock
        if this.name in ("unlock", "Unlock"):
            state.locks = tuple(held for held in state.locks if held[0] != mutex.mutex)
        else:
            state.locks = (*state.locks, (mutex.mutex, this.node))
        return UNKNOWN
    if this.name in ("lock", "Lock"):
        walker.note("lock", this.node, state, on=mutex, name=this.name)
        state.locks = (*state.locks, (mutex, this.node))
        state.manual_locks = (*state.manual_locks, mutex)
    else:
        state.locks = tuple(held for held in state.locks if held[0] != mutex)
        state.manual_locks = tuple(held for held in state.manual_locks if held != mutex)
    return UNKNOWN


def _ok(_: Walker, this: Call, __: State) -> Symbol:
    return Ok(this.on)


def _joined(_: Walker, this: Call, state: State) -> Symbol:
    symbol = this.on
    if symbol in state.held:
        state.held[symbol] = state.held[symbol]._replace(state="escaped")
    return Result(this.name, (symbol,))


def _unref(walker: Walker, this: Call, state: State) -> Symbol:
    memory_calls.give_back(walker, this.node, state, this.on, "Unref")
    return UNKNOWN


def _at(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=this.on, by=values)
    return Result("at", (this.on, *values))


def _reset(walker: Walker, this: Call, state: State) -> Symbol:
    """p.reset() of a smart pointer frees what it owned."""
    values = this.values(walker, state)
    held = state.held.get(this.on)
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    if held is not None and held.state == "owned":
        state.held[this.on] = held._replace(state="freed", at=this.node)
    for value in values:
        state.escape(value)
    if target is not None and target.text in state.variables and isinstance(this.on, (Heap, Null)):
        state.variables[target.text] = values[0] if values else UNKNOWN
    elif target is not None:
        outlives(walker, this.node, state, this.on)
    return UNKNOWN


def _substr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="substr", on=this.on, by=values)
    return Result("substr", (this.on, *values))


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
