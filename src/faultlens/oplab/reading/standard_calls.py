"""What functions of C and C++ do that matter here: memory, copies, containers, locks, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from faultlens.oplab.reading.declarations import escape
from faultlens.oplab.reading.expressions import element, mark_written, outlives
from faultlens.oplab.reading.known import Call
from faultlens.oplab.reading.state import Held, State
from faultlens.oplab.reading.symbols import BUFFERS, UNKNOWN, ZERO, Symbol, data_in, number
from faultlens.oplab.reading.syntax import Node

if TYPE_CHECKING:
    from faultlens.oplab.reading.walk import Walker

Handler = Callable[["Walker", Call, State], Symbol]
ALGORITHMS = (
    "partial_sort", "nth_element", "sort", "stable_sort", "rotate", "reverse", "accumulate", "partial_sum", "iota",
    "lower_bound", "upper_bound", "inner_product", "generate_n", "make_heap", "transform", "swap_ranges",
)  # fmt: skip


# -------------------------------------------------------------------------------------------- memory


def _allocate(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    symbol: Symbol = ("heap", this.node.start, "")
    size = values[1] if this.name in ("aligned_alloc",) and len(values) > 1 else values[0] if values else UNKNOWN
    if this.name == "calloc" and len(values) > 1:
        size = ("*", *values[:2])
    if this.name == "realloc" and len(values) > 1:
        size = values[1]
        escape(state, values[0])
    walker.note("size", this.node, state, on=symbol, by=(size,), name="malloc", detail=this.name)
    state.held[symbol] = Held(this.name, this.node)
    state.shapes[symbol] = ("allocated", size)
    if this.name in ("calloc", "realloc", "strdup"):
        state.written |= {symbol}
    return symbol


def _free(walker: Walker, this: Call, state: State) -> Symbol:
    give_back(walker, this.node, state, this.value(walker, state, 0), this.name)
    return UNKNOWN


def give_back(walker: Walker, node: Node, state: State, value: Symbol, how: str) -> None:
    """free(p), delete p, p->Unref()."""
    symbol = value[1] if value[0] == "ptr" and value[2] == ZERO else value
    held = state.held.get(symbol)
    if held is not None and (held.what == "reference" or how == "Unref"):  # others may hold one as well
        state.held[symbol] = held._replace(state="escaped")
    elif held is not None and held.state == "owned":  # its owner frees it as well
        walker.note("free", node, state, on=symbol, name=how)
    elif held is not None:
        walker.note("free", node, state, on=symbol, name=how)
        state.held[symbol] = held._replace(state="freed", at=node)
    elif value[0] in ("member", "static", "global"):
        outlives(walker, node, state, value)


def _owned(walker: Walker, this: Call, state: State) -> Symbol:
    """std::make_unique<float[]>(n): memory with an owner, all of it 0."""
    values = this.values(walker, state)
    kind = this.types[0] if this.types else ""
    if not kind.endswith("[]"):
        walker.hand_over(values, state)
        for value in values:
            mark_written(state, value)
        return ("call", this.name, *values)
    symbol: Symbol = ("heap", this.node.start, kind.removesuffix("[]").strip())
    size = values[0] if values else UNKNOWN
    walker.note("size", this.node, state, on=symbol, by=(size,), name="new")
    state.shapes[symbol] = size
    state.written |= {symbol}
    state.held[symbol] = Held("new", this.node, "owned", this.node)
    return symbol


def _open(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    symbol: Symbol = ("file", this.node.start, *values[:1])
    state.held[symbol] = Held("file", this.node)
    return symbol


def _close(walker: Walker, this: Call, state: State) -> Symbol:
    for value in this.values(walker, state):
        escape(state, value)
    return UNKNOWN


def _stack(walker: Walker, this: Call, state: State) -> Symbol:
    size = this.value(walker, state, 0)
    symbol: Symbol = ("array", this.node.start, "char", size)
    walker.note("size", this.node, state, on=symbol, by=(size,), name="stack", detail="alloca")
    return symbol


def _copy(walker: Walker, this: Call, state: State) -> Symbol:
    """memcpy(target, source, bytes)."""
    values = this.values(walker, state)
    if len(values) >= 3:
        walker.note("copy", this.node, state, on=values[0], by=(values[1], values[2]), name=this.name)
        mark_written(state, values[0])
        return values[0]
    return UNKNOWN


def ranges(walker: Walker, this: Call, state: State, values: list[Symbol]) -> None:
    """v.begin() + k, p + k handed to an algorithm: the last element before it is used, where data decides about k."""
    ends = list(values)
    if this.name.endswith("_n") and len(values) > 1 and values[0][0] == "ptr":
        ends.append(("ptr", values[0][1], ("+", values[0][2], values[1]), values[0][3]))
    for end in ends:
        if end[0] == "ptr" and end[1][0] in BUFFERS and any(data_in(end[2])):
            walker.note("index", this.node, state, on=end[1], by=(("-", end[2], number(1)),), name="range")


def _fill(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if this.name != "memset":
        ranges(walker, this, state, values)
    if len(values) >= 3:
        if this.name == "memset":
            walker.note("copy", this.node, state, on=values[0], by=(UNKNOWN, values[2]), name=this.name)
        for value in values[:2]:
            mark_written(state, value)
    return UNKNOWN


def _range_copy(walker: Walker, this: Call, state: State) -> Symbol:
    """std::copy(begin, end, target), std::copy_n(begin, count, target)."""
    values = this.values(walker, state)
    ranges(walker, this, state, values)
    if len(values) >= 3:
        count: Symbol = values[1] if this.name == "copy_n" else ("-", values[1], values[0])
        if values[0][0] == values[1][0] == "ptr" and values[0][1] == values[1][1] and this.name == "copy":
            count = ("-", values[1][2], values[0][2])
        walker.note("copy", this.node, state, on=values[2], by=(values[0], ("elements", count)), name=this.name)
        mark_written(state, values[2])
    return UNKNOWN


def _text_copy(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note(
        "copy", this.node, state, on=values[0] if values else UNKNOWN, by=values[1:], name=this.name, detail="text"
    )
    return values[0] if values else UNKNOWN


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
    **dict.fromkeys(
        ("malloc", "calloc", "realloc", "aligned_alloc", "strdup", "_mm_malloc", "AlignedMalloc"), _allocate
    ),
    **dict.fromkeys(("free", "_mm_free", "AlignedFree"), _free),
    **dict.fromkeys(("alloca", "__builtin_alloca"), _stack),
    **dict.fromkeys(("make_unique", "make_unique_for_overwrite", "make_shared"), _owned),
    **dict.fromkeys(("fopen", "popen", "opendir"), _open),
    **dict.fromkeys(("fclose", "pclose", "closedir"), _close),
    **dict.fromkeys(("memcpy", "memmove"), _copy),
    **dict.fromkeys(("memset", "fill", "fill_n"), _fill),
    **dict.fromkeys(("copy", "copy_n"), _range_copy),
    **dict.fromkeys(("strcpy", "strcat", "sprintf", "vsprintf", "gets", "stpcpy"), _text_copy),
    **dict.fromkeys(("min", "max", "clamp", "Clamp"), _limited),
    **dict.fromkeys(("min_element", "max_element", "minmax_element"), _most),
    **dict.fromkeys(
        ("move", "forward", "SubtleMustCopy", "as_const", "ref", "cref", "ValueOrDie", "to_address"), _first
    ),
    **dict.fromkeys(("stoi", "stol", "stoll", "stoul", "stoull", "stof", "stod"), _thrower),
    **dict.fromkeys(("abort", "exit", "_exit", "terminate", "quick_exit"), _ends),
    **dict.fromkeys(("getenv", "strchr", "strstr", "strrchr", "dlopen", "dlsym"), _nullable),
}


# ---------------------------------------------------------------------------------------- containers


def _on(this: Call) -> Symbol:
    return this.object or UNKNOWN


def _resize(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    size = values[0] if values else UNKNOWN
    walker.note("size", this.node, state, on=_on(this), by=(size,), name=this.name)
    if this.name != "reserve":
        state.shapes[_on(this)] = size
    state.moved(_on(this))
    _captured(walker, this, state)
    return UNKNOWN


def _grow(walker: Walker, this: Call, state: State) -> Symbol:
    walker.hand_over(this.values(walker, state), state)
    state.shapes[_on(this)] = ("size", (*_on(this), this.node.start))
    state.moved(_on(this))
    _captured(walker, this, state)
    return UNKNOWN


def _captured(walker: Walker, this: Call, state: State) -> None:
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    if walker.parallel is not None and target is not None and target.text in walker.shared:
        walker.note("assign", this.node, state, name=target.text, detail="captured", write=True)


def _size(_: Walker, this: Call, state: State) -> Symbol:
    known = state.shapes.get(_on(this))
    return known if known is not None else ("size", _on(this))


def _end_element(walker: Walker, this: Call, state: State) -> Symbol:
    index: Symbol = ZERO if this.name == "front" else ("-", ("size", _on(this)), number(1))
    return element(walker, this.node, state, _on(this), [index])


def _checked_element(walker: Walker, this: Call, state: State) -> Symbol:
    """v.at(i) throws where v[i] reads what is not there."""
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=_on(this), by=values)
    return ("elem", _on(this), values[0] if values else UNKNOWN, _on(this)[2])


CONTAINER: dict[str, Handler] = {
    **dict.fromkeys(("resize", "reserve", "assign"), _resize),
    **dict.fromkeys(("push_back", "emplace_back", "insert", "emplace", "clear", "pop_back", "erase", "swap"), _grow),
    "size": _size,
    "data": lambda _, this, __: ("ptr", _on(this), ZERO, _on(this)[2]),
    "begin": lambda _, this, __: ("ptr", _on(this), ZERO, _on(this)[2]),
    "end": lambda _, this, state: ("ptr", _on(this), state.shapes.get(_on(this), ("size", _on(this))), _on(this)[2]),
    "empty": lambda _, this, state: ("==", state.shapes.get(_on(this), ("size", _on(this))), ZERO),
    "front": _end_element,
    "back": _end_element,
    "at": lambda walker, this, state: _checked_element(walker, this, state),
}


# --------------------------------------------------------------------------------------- any object


def lock(walker: Walker, this: Call, state: State) -> Symbol:
    mutex = _on(this)
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
    status = _on(this)
    return ("ok-status",) if status == ("ctx-status",) else ("ok", status)


def _joined(_: Walker, this: Call, state: State) -> Symbol:
    symbol = _on(this)
    if symbol in state.held:
        state.held[symbol] = state.held[symbol]._replace(state="escaped")
    return ("call", this.name, symbol)


def _unref(walker: Walker, this: Call, state: State) -> Symbol:
    give_back(walker, this.node, state, _on(this), "Unref")
    return UNKNOWN


def _at(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="at", on=_on(this), by=values)
    return ("call", "at", _on(this), *values)


def _reset(walker: Walker, this: Call, state: State) -> Symbol:
    """p.reset() of a smart pointer frees what it owned."""
    values = this.values(walker, state)
    held = state.held.get(_on(this))
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    if held is not None and held.state == "owned":
        state.held[_on(this)] = held._replace(state="freed", at=this.node)
    for value in values:
        escape(state, value)
    if target is not None and target.text in state.variables and _on(this)[0] in ("heap", "null"):
        state.variables[target.text] = values[0] if values else UNKNOWN
    elif target is not None:
        outlives(walker, this.node, state, _on(this))
    return UNKNOWN


def _substr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note("throw", this.node, state, name="substr", on=_on(this), by=values)
    return ("call", "substr", _on(this), *values)


def _release(_: Walker, this: Call, __: State) -> Symbol:
    return _on(this)


def _ignored(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("ignored", this.node, state, on=_on(this), name="IgnoreError")
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
