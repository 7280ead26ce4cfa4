"""What functions of C and C++ do with memory: take it, give it back, copy and fill it; files are held alike."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Array, Buffer, Heap, Pointer
from faultlens.custom_op.check.interpret.call_symbols import AllocatedBytes, ElementCount, File, Result
from faultlens.custom_op.check.interpret.callbacks import hand_over
from faultlens.custom_op.check.interpret.composition import data_in
from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import mark_written, outlives
from faultlens.custom_op.check.interpret.state import Held, State
from faultlens.custom_op.check.interpret.symbols import ONE, UNKNOWN, ZERO, Binary, Persistent, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.syntax.types import is_plain

ALGORITHMS = (
    "partial_sort", "nth_element", "sort", "stable_sort", "rotate", "reverse", "accumulate", "partial_sum", "iota",
    "lower_bound", "upper_bound", "inner_product", "generate_n", "make_heap", "transform", "swap_ranges",
)  # fmt: skip


def _allocate(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    symbol = Heap(this.node.start, "")
    size = values[1] if this.name in ("aligned_alloc",) and len(values) > 1 else values[0] if values else UNKNOWN
    if this.name == "calloc" and len(values) > 1:
        size = Binary("*", values[0], values[1])
    if this.name == "realloc" and len(values) > 1:
        size = values[1]
        state.escape(values[0])
    walker.note("size", this.node, state, on=symbol, by=(size,), name="malloc", detail=this.name)
    state.held[symbol] = Held(this.name, this.node)
    state.shapes[symbol] = AllocatedBytes(size)
    if this.name in ("calloc", "realloc", "strdup"):
        state.written |= {symbol}
    return symbol


def _free(walker: Walker, this: Call, state: State) -> Symbol:
    give_back(walker, this.node, state, this.value(walker, state, 0), this.name)
    return UNKNOWN


def give_back(walker: Walker, node: Node, state: State, value: Symbol, how: str) -> None:
    """free(p), delete p, p->Unref()."""
    symbol = value.buffer if isinstance(value, Pointer) and value.offset == ZERO else value
    held = state.held.get(symbol)
    if held is not None and (held.what == "reference" or how == "Unref"):  # others may hold one as well
        state.held[symbol] = held._replace(state="escaped")
    elif held is not None and held.state == "owned":  # its owner frees it as well
        walker.note("free", node, state, on=symbol, name=how)
    elif held is not None:
        walker.note("free", node, state, on=symbol, name=how)
        state.held[symbol] = held._replace(state="freed", at=node)
    elif isinstance(value, Persistent):
        outlives(walker, node, state, value)


def new_expression(walker: Walker, node: Node, state: State) -> Symbol:
    """new T(…), new T[n]."""
    kind, declarator = node.get("type"), node.get("declarator")
    given = node.get("arguments")
    values = [walker.evaluate(each, state) for each in given.children] if given else []
    symbol = Heap(node.start, kind.text if kind else "")
    length = declarator.get("length") if declarator is not None else None
    size = walker.evaluate(length, state) if length is not None else ONE
    hand_over(walker, values, state)
    if node.get("placement") is not None:
        return UNKNOWN
    walker.note("size", node, state, on=symbol, by=(size,), name="new")
    if given is not None or not is_plain(symbol.type):  # new float[n]() sets all to 0
        state.written |= {symbol}
    state.held[symbol] = Held("new", node)
    state.shapes[symbol] = size
    return symbol


def delete_expression(walker: Walker, node: Node, state: State) -> Symbol:
    value = walker.evaluate(node.children[-1], state) if node.children else UNKNOWN
    give_back(walker, node, state, value, "delete")
    return UNKNOWN


def _owned(walker: Walker, this: Call, state: State) -> Symbol:
    """std::make_unique<float[]>(n): memory with an owner, all of it 0."""
    values = this.values(walker, state)
    kind = this.types[0] if this.types else ""
    if not kind.endswith("[]"):
        hand_over(walker, values, state)
        for value in values:
            mark_written(state, value)
        return Result(this.name, tuple(values))
    symbol: Symbol = Heap(this.node.start, kind.removesuffix("[]").strip())
    size = values[0] if values else UNKNOWN
    walker.note("size", this.node, state, on=symbol, by=(size,), name="new")
    state.shapes[symbol] = size
    state.written |= {symbol}
    state.held[symbol] = Held("new", this.node, "owned", this.node)
    return symbol


def _open(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    symbol: Symbol = File(this.node.start, tuple(values[:1]))
    state.held[symbol] = Held("file", this.node)
    return symbol


def _close(walker: Walker, this: Call, state: State) -> Symbol:
    for value in this.values(walker, state):
        state.escape(value)
    return UNKNOWN


def _stack(walker: Walker, this: Call, state: State) -> Symbol:
    size = this.value(walker, state, 0)
    symbol: Symbol = Array(this.node.start, "char", size)
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
    if this.name.endswith("_n") and len(values) > 1 and isinstance(first := values[0], Pointer):
        ends.append(Pointer(first.buffer, Binary("+", first.offset, values[1]), first.type))
    for end in ends:
        if isinstance(end, Pointer) and isinstance(end.buffer, Buffer) and any(data_in(end.offset)):
            walker.note("index", this.node, state, on=end.buffer, by=(Binary("-", end.offset, ONE),), name="range")


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
        begin, end = values[:2]
        count = end if this.name == "copy_n" else Binary("-", end, begin)
        if this.name == "copy" and isinstance(begin, Pointer) and isinstance(end, Pointer):
            count = Binary("-", end.offset, begin.offset) if begin.buffer == end.buffer else count
        walker.note("copy", this.node, state, on=values[2], by=(begin, ElementCount(count)), name=this.name)
        mark_written(state, values[2])
    return UNKNOWN


def _text_copy(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    walker.note(
        "copy", this.node, state, on=values[0] if values else UNKNOWN, by=values[1:], name=this.name, detail="text"
    )
    return values[0] if values else UNKNOWN


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
}
