"""How many elements tensors and buffers have, and which sizes belong together."""

from __future__ import annotations

from collections.abc import Iterable

from faultlens.custom_op.check.checked import facts, size_told, told
from faultlens.custom_op.check.interpret.buffer_symbols import (
    SIZES,
    Dim,
    Memory,
    NumElements,
    Shape,
    ShapeOf,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import AllocatedBytes, Whole
from faultlens.custom_op.check.interpret.events import ProgramPoint
from faultlens.custom_op.check.interpret.linear import product
from faultlens.custom_op.check.interpret.symbols import (
    Attr,
    Member,
    Name,
    Param,
    SizeOf,
    Symbol,
    Variable,
    Varying,
    is_binary,
    number,
)


def extent(point: ProgramPoint, buffer: Symbol) -> Symbol | None:
    """Its number of elements, told by what it was made from."""
    shape = point.shapes.get(buffer)
    if isinstance(buffer, Memory):
        return _elements(shape.bytes) if isinstance(shape, AllocatedBytes) else shape
    match shape:
        case None:
            return NumElements(buffer) if is_tensor(buffer) else None
        case Shape(other):
            return extent(point, other) if other != buffer else None
        case ShapeOf(dims):
            return product(dims)
    return None


def _elements(size: Symbol) -> Symbol | None:
    """malloc(n * sizeof(float))."""
    others = [factor for factor in size.operands() if not isinstance(factor, SizeOf)] if is_binary(size, "*") else []
    return others[0] if len(others) == 1 else None


def dimension(point: ProgramPoint, tensor: Symbol, at: int) -> Symbol | None:
    match point.shapes.get(tensor):
        case None:
            return Dim(tensor, number(at)) if is_tensor(tensor) else None
        case Shape(other):
            return dimension(point, other, at) if other != tensor else None
        case ShapeOf(dims):
            return dims[at] if at < len(dims) else None
    return None


def related(point: ProgramPoint, left: Iterable[Symbol], right: Iterable[Symbol]) -> bool:
    """Whether checks, or how they were made, bring the two groups of tensors together."""
    groups: dict[Symbol, Symbol] = {}

    def root(symbol: Symbol) -> Symbol:
        while symbol in groups:
            symbol = groups[symbol]
        return symbol

    def unite(symbols: Iterable[Symbol]) -> None:
        found = list(dict.fromkeys(map(root, symbols)))
        for other in found[1:]:
            groups[other] = found[0]

    for fact in facts(point):
        unite(_sized(fact.condition))
    for tensor, shape in point.shapes.items():
        unite([tensor, *_sized(shape)])
    left, right = list(left), list(right)
    if {root(symbol) for symbol in left} & {root(symbol) for symbol in right}:
        return True
    return all(size_told(point, tensor) for tensor in (*left, *right) if is_tensor(tensor))


def _sized(condition: Symbol) -> list[Symbol]:
    """Tensors whose size it speaks of, and the attributes, members and variables beside them."""
    found: list[Symbol] = []
    for part in told(condition):
        if isinstance(part, SIZES):
            found.append(part.subject)
        elif isinstance(part, Whole):
            found.append(part.tensor)
        elif isinstance(part, (Attr, Param, Member, Varying, Variable, Name)):
            found.append(part)
    return found
