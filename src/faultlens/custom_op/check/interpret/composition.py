"""What a symbolic value is made of, and which data of inputs it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from faultlens.custom_op.check.interpret.buffer_symbols import (
    ByteSize,
    Dim,
    Element,
    Input,
    Length,
    Listed,
    NumElements,
    Tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.symbols import (
    COMPARISONS,
    Binary,
    Conditional,
    Limited,
    Loop,
    Not,
    Symbol,
    Unsigned,
)

LOW, HIGH = "low", "high"
BOTH = frozenset({LOW, HIGH})
Sides = frozenset[str]
_NONE: Sides = frozenset()
_LIMITS = {"min": frozenset({HIGH}), "max": frozenset({LOW})}
_LOGIC = (*COMPARISONS, "&&", "||")
_ARITHMETIC = (
    "abs", "floor", "ceil", "round", "lround", "llround", "rint", "trunc", "fabs", "floorf", "ceilf", "roundf",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def parts(symbol: Symbol) -> frozenset[Symbol]:
    """It and all that it is made of; what limits a loop is no part of its counter."""
    found = {symbol}
    if not isinstance(symbol, Loop):
        for part in symbol.operands():
            found |= parts(part)
    return frozenset(found)


@lru_cache(maxsize=1 << 16)
def origins(symbol: Symbol) -> frozenset[Symbol]:
    """As `parts`, and what its loops run to."""
    found = {symbol}
    for part in symbol.operands():
        found |= origins(part)
    return frozenset(found)


def tensors_in(symbol: Symbol) -> frozenset[Symbol]:
    return frozenset(part for part in origins(symbol) if isinstance(part, Tensor))


def loops_in(symbol: Symbol) -> list[Loop]:
    """Counters of loops, in the order of the source."""
    return sorted((part for part in parts(symbol) if isinstance(part, Loop)), key=lambda loop: (loop.place, loop.name))


def substitute(symbol: Symbol, old: Symbol, new: Symbol) -> Symbol:
    return new if symbol == old else symbol.map(lambda part: substitute(part, old, new))


def data_in(symbol: Symbol, sides: Sides = _NONE) -> Iterator[tuple[Element, Sides]]:
    """Elements of inputs that the value comes from, and on which sides the expression itself limits them."""
    match symbol:
        case Element(buffer, _, type_):
            if isinstance(buffer, (Input, Listed)):
                yield symbol, sides | ({LOW} if type_.startswith(("uint", "bool")) else _NONE)
        case Binary(sign, left, right):
            if sign in ("%", "/", ">>"):
                yield from data_in(left, sides | ({HIGH} if sign == "%" else _NONE))
            elif sign not in _LOGIC:
                within = sides | BOTH if sign == "&" else sides
                yield from data_in(left, within)
                yield from data_in(right, within)
        case Loop():
            yield from data_in(symbol.limit, sides | {LOW})
        case Conditional(condition, then, otherwise):
            asked = parts(condition)
            yield from (each for part in (then, otherwise) for each in data_in(part, sides) if each[0] not in asked)
        case Not() | Dim() | NumElements() | ByteSize() | Length() | Limited("clamp"):
            pass
        case Result(function) if function not in _ARITHMETIC:
            pass  # what a function makes of data is not known
        case _:
            within = sides | {LOW} if isinstance(symbol, Unsigned) else sides
            if isinstance(symbol, Limited):
                within = sides | _LIMITS[symbol.function]
            for part in symbol.operands():
                yield from data_in(part, within)
