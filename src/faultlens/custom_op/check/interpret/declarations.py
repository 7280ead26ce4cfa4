"""What declarations make: variables with their types, arrays, containers, locks, threads."""

from __future__ import annotations

import re

from faultlens.custom_op.check.interpret import inferred
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Array,
    Element,
    Input,
    Length,
    Output,
    Pointer,
    Shape,
    ShapeOf,
    Temporary,
    Vector,
    View,
    buffer_of,
)
from faultlens.custom_op.check.interpret.call_symbols import Braces, Field, Guard, Item, Lock, Result, Thread
from faultlens.custom_op.check.interpret.callbacks import hand_over
from faultlens.custom_op.check.interpret.casts import as_type, narrowed
from faultlens.custom_op.check.interpret.places import mark_written
from faultlens.custom_op.check.interpret.state import Held, State
from faultlens.custom_op.check.interpret.symbols import (
    UNKNOWN,
    Binary,
    Member,
    Static,
    String,
    Symbol,
    Variable,
    number,
)
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.functions import declared_type
from faultlens.custom_op.check.syntax.syntax import Node, name_of, read_again
from faultlens.custom_op.check.syntax.types import CONTAINERS, is_plain

LOCKS = re.compile(
    r"\b(?:mutex_lock|tf_shared_lock|lock_guard|unique_lock|scoped_lock|shared_lock|MutexLock|ReaderMutexLock"
    r"|WriterMutexLock|SpinLockHolder|LockGuard)\b"
)
_MAKERS = ("new_expression", "lambda_expression")


def declare(walker: Walker, node: Node, state: State) -> Symbol:
    """All variables of a declaration; the value of the last."""
    value: Symbol = UNKNOWN
    for declarator in node.all("declarator"):
        value = _one(walker, node, declarator, state)
    return value


def _one(walker: Walker, node: Node, declarator: Node, state: State) -> Symbol:
    name, kind = name_of(declarator), declared_type(node, declarator)
    place = declarator.start
    given = _given(declarator)
    state.uninitialized -= {name}
    array = _array(declarator)
    if array is not None:
        value = _declare_array(walker, node, array, kind, state)
        if given is None and "static" not in kind:
            state.uninitialized |= {name}
        elif given is not None:
            state.written |= {value}
    elif given is None and declarator.kind != "function_declarator":
        value = made(walker, kind, [], place, declarator, state)
        if value == UNKNOWN:
            value = Variable(name, place)
        if is_plain(kind) and "static" not in kind and node.kind == "declaration":
            state.uninitialized |= {name}
    elif given is not None and given.kind not in ("argument_list", "initializer_list"):
        value = walker.evaluate(given, state)
        if kind.endswith("auto") or "auto" in kind:
            kind = kind.replace("auto", inferred.type_of(walker, given, state) or "auto")
        if not kind.endswith(("&", "*")) and re.search(r"\bTensor\b", kind) and isinstance(value, (Input, Output)):
            state.types[name] = kind
    else:
        values = [walker.evaluate(each, state) for each in _values(declarator, given)]
        listed = given is not None and given.kind == "initializer_list"
        value = made(walker, kind, values, place, declarator, state, listed=listed)
        if value == UNKNOWN:
            hand_over(walker, values, state)
            for each in values:
                mark_written(state, each)
            made_of = Result(kind, tuple(values)) if values else Variable(name, place)
            value = values[0] if len(values) == 1 else made_of
    if kind.startswith("static ") and ("*" in kind or "const" not in kind) and not kind.endswith("* const"):
        state.escape(value)
        value = Static(name)
    if walker.parallel is not None:
        walker.shared -= {name}
    if not kind.endswith(("&", "*")) and not is_plain(kind) and isinstance(value, (Element, Field, Item, Member)):
        value = Variable(name, place) if not buffer_of(value) else value  # a copy of its own
    if isinstance(value, (Result, Braces)):  # whoever holds the pointer may write there
        mark_written(state, value)
    _refer(state, name, kind, given)
    narrowed(walker, given or declarator, state, value, kind)
    state.variables[name] = as_type(value, kind)
    state.types[name] = kind
    return value


_INTO = re.compile(r"&?\s*(\w+)\s*(?:\.\s*(?:back|front|begin|end|data|at|find|emplace_back|rbegin)\s*\(.*\)|\[.*\])")


def _refer(state: State, name: str, kind: str, given: Node | None) -> None:
    """auto& last = v.back(): `last` lives as long as the elements of v stay where they are."""
    state.references.pop(name, None)
    state.invalidated -= {name}
    found = _INTO.fullmatch(given.text) if given is not None else None
    if found is None or found[1] not in state.variables:
        return
    text = given.text if given is not None else ""
    points = "&" in kind or "*" in kind or "iterator" in kind or re.search(r"\b(?:begin|find|end|data)\s*\(", text)
    container = state.variables[found[1]]
    if points and (isinstance(container, Vector) or CONTAINERS.search(state.types.get(found[1], ""))):
        state.references[name] = container


def made(
    walker: Walker, kind: str, values: list[Symbol], place: int, node: Node, state: State, *, listed: bool = False
) -> Symbol:
    """What a constructor makes of its arguments; UNKNOWN where it is nothing special."""
    plain = re.sub(r"\b(?:const|static|constexpr|mutable)\b|[&*]", "", kind).strip()
    last = plain.partition("<")[0].rpartition("::")[2].strip()
    if "*" in kind:
        return UNKNOWN
    if LOCKS.search(plain) and values:
        mutex = values[0]
        if not walker.deferred:
            walker.note("lock", node, state, on=mutex, name=last)
        state.locks = (*state.locks, (mutex, node))
        return Lock(mutex)
    if CONTAINERS.match(plain):
        return _container(walker, Vector(place, _element(plain)), values, node, state, listed)
    if last == "Tensor":
        if values and isinstance(values[0], (Input, Output, Temporary)):
            return values[0]
        symbol: Symbol = Temporary(place)
        if len(values) > 1:
            state.shapes[symbol] = values[-1]
        return symbol
    if last in ("TensorShape", "PartialTensorShape"):
        return shape(walker, values, listed, node, state)
    if last == "thread" and "std" in plain and values:
        symbol = Thread(place)
        state.held[symbol] = Held("thread", node)
        return symbol
    if last in ("unique_ptr", "shared_ptr", "RefCountPtr", "ScopedUnref") or last.endswith("Cleanup"):
        for value in values:
            if last in ("unique_ptr", "shared_ptr"):
                _own(walker, value, node, state)
            else:
                state.escape(value)
        return values[0] if values and last.endswith("_ptr") else Guard(tuple(values))
    if "regex" in last and values and not isinstance(values[0], String):
        walker.note("throw", node, state, name="regex", by=values)
    if last == "Map" and "Aligned" in plain and values:
        walker.note("call", node, state, name=_alignment(plain), by=values)
    return UNKNOWN


def _container(walker: Walker, symbol: Vector, values: list[Symbol], node: Node, state: State, listed: bool) -> Symbol:
    if listed or not values:
        state.shapes[symbol] = number(len(values))
    elif isinstance(values[0], (Vector, Pointer, View, Braces)):  # a copy
        state.shapes[symbol] = state.shapes.get(values[0], Length(symbol))
    else:
        state.shapes[symbol] = values[0]
        walker.note("size", node, state, by=values[:1], name="vector", on=symbol)
    state.written |= {symbol}
    return symbol


def _own(walker: Walker, value: Symbol, node: Node, state: State) -> None:
    """A smart pointer takes memory: it is the only one that may free it."""
    held = state.held.get(value)
    if held is not None and held.state == "owned":
        walker.note("free", node, state, on=value, name="owner")
    elif held is not None and held.what in ("new", "malloc"):
        state.held[value] = held._replace(state="owned", at=node)
    else:
        state.escape(value)


def _alignment(kind: str) -> str:
    """ "Aligned32" of Eigen::Map<…, Eigen::Aligned32>."""
    found = re.search(r"Aligned(\d*)", kind)
    return f"Aligned{found[1] or 16}" if found else ""


def shape(walker: Walker, values: list[Symbol], listed: bool, node: Node, state: State) -> Symbol:
    """TensorShape({a, b}), TensorShape(other)."""
    if len(values) == 1 and isinstance(values[0], Braces):
        dims = values[0].values
    elif len(values) == 1 and isinstance(values[0], (Shape, ShapeOf)):
        return values[0]
    elif not values or listed:
        dims = tuple(values)
    else:
        return Result("TensorShape", tuple(values))
    walker.note("size", node, state, by=dims, name="shape")
    return ShapeOf(dims)


def declared_in(node: Node) -> set[str]:
    """Names that the statements of a block declare, not those of inner blocks."""
    found = set()
    for child in (node, *node.children):
        if child.kind == "declaration":
            found |= {name_of(each) for each in child.all("declarator")}
    return found


def changed_in(node: Node) -> set[str]:
    """Names that are assigned to, counted up, or whose address is given away."""
    found = set()
    for each in node.find("assignment_expression", "update_expression", "pointer_expression"):
        target = each.get("left") or each.get("argument")
        if each.kind == "pointer_expression" and each.operator != "&":
            continue
        if target is not None and target.kind in ("identifier", "field_expression"):
            found.add(target.text)
    return found


def names_in(node: Node) -> list[Node]:
    return [each for each in node.walk() if each.kind in ("identifier", "field_identifier")]


def _declare_array(walker: Walker, node: Node, array: Node, kind: str, state: State) -> Symbol:
    size_node = array.get("size")
    size = walker.evaluate(size_node, state) if size_node is not None else UNKNOWN
    inner = array.get("declarator")
    if inner is not None and inner.kind == "array_declarator" and (other := inner.get("size")) is not None:
        size = Binary("*", walker.evaluate(other, state), size)
    if "static" in kind:
        return Static(name_of(array))
    symbol: Symbol = Array(array.start, kind, size)
    walker.note("size", node, state, by=(size,), name="stack", detail=kind, on=symbol)
    state.shapes[symbol] = size
    return symbol


def _given(declarator: Node) -> Node | None:
    return declarator.get("value") if declarator.kind == "init_declarator" else None


def _array(declarator: Node) -> Node | None:
    inner: Node | None = declarator
    while inner is not None and inner.kind in ("init_declarator", "pointer_declarator", "array_declarator"):
        if inner.kind == "array_declarator":
            return inner
        inner = inner.get("declarator")
    return None


def _values(declarator: Node, given: Node | None) -> list[Node]:
    """Arguments of a constructor; `v(n)` looks like a function to the parser: it is read again, at its place."""
    if given is not None:
        return [child for child in given.children if child.kind != "comment"]
    listed = declarator.get("parameters")
    if listed is None or not listed.children:
        return []
    found = next(read_again(listed).find("parenthesized_expression"), None)
    inner = found.children[0] if found and found.children else None
    values: list[Node] = []
    while inner is not None and inner.kind == "comma_expression":
        right = inner.get("right")
        values += [right] if right is not None else []
        inner = inner.get("left")
    return [*([inner] if inner is not None else []), *reversed(values)]


def _element(kind: str) -> str:
    return kind.partition("<")[2].rpartition(">")[0].partition(",")[0].strip()
