"""How many elements tensors and buffers have, and which sizes belong together."""

from __future__ import annotations

from collections.abc import Iterable

from faultlens.custom_op.check.checked import SIZES, facts, size_told, told
from faultlens.custom_op.check.interpret.events import Place
from faultlens.custom_op.check.interpret.symbols import Symbol, is_tensor, number


def extent(place: Place, buffer: Symbol) -> Symbol | None:
    """Its number of elements, told by what it was made from."""
    shape = place.shapes.get(buffer)
    if buffer[0] in ("array", "vec", "heap"):
        if shape is None or shape[0] == "allocated":
            return _elements(shape[1]) if shape else None
        return shape
    if shape is None:
        return ("numel", buffer) if is_tensor(buffer) else None
    if shape[0] == "shape":
        return extent(place, shape[1]) if shape[1] != buffer else None
    if shape[0] == "mkshape":
        product: Symbol = number(1)
        for dim in shape[1:]:
            product = dim if product == number(1) else ("*", product, dim)
        return product
    return None


def _elements(size: Symbol) -> Symbol | None:
    """malloc(n * sizeof(float))."""
    factors: tuple[Symbol, ...] = size[1:] if size[0] == "*" else ()
    others = [factor for factor in factors if factor[0] != "sizeof"]
    return others[0] if len(others) == 1 and len(factors) == 2 else None


def dimension(place: Place, tensor: Symbol, at: int) -> Symbol | None:
    shape = place.shapes.get(tensor)
    if shape is None:
        return ("dim", tensor, number(at)) if is_tensor(tensor) else None
    if shape[0] == "shape":
        return dimension(place, shape[1], at) if shape[1] != tensor else None
    dims: tuple[Symbol, ...] = shape[1:] if shape[0] == "mkshape" else ()
    return dims[at] if at < len(dims) else None


def related(place: Place, left: Iterable[Symbol], right: Iterable[Symbol]) -> bool:
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

    for fact in facts(place):
        unite(_sized(fact.condition))
    for tensor, shape in place.shapes.items():
        unite([tensor, *_sized(shape)])
    left, right = list(left), list(right)
    if {root(symbol) for symbol in left} & {root(symbol) for symbol in right}:
        return True
    return all(size_told(place, tensor) for tensor in (*left, *right) if is_tensor(tensor))


def _sized(condition: Symbol) -> list[Symbol]:
    """Tensors whose size it speaks of, and the attributes, members and variables beside them."""
    found: list[Symbol] = []
    for part in told(condition):
        if (part[0] in SIZES or part[0] == "whole") and isinstance(part[1], tuple):
            found.append(part[1])
        elif part[0] in ("attr", "param", "member", "vary", "var", "name"):
            found.append(part)
    return found
