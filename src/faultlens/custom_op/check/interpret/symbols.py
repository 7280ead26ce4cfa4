"""What an expression stands for, told by where it comes from: nested tuples, equal where the values are.

Tensors:  ("input", 0)  ("output", 0)  ("temp", place)
Facts:    ("dims", t)  ("dim", t, k)  ("numel", t)  ("bytes", t)  ("shape", t)  ("dtype", t)
Access:   ("view", t, method, type, rank)  ("ptr", buffer, offset)  ("elem", buffer, index)
Buffers:  tensors, ("array", place, type, size)  ("heap", place)  ("vec", place, type)
Others:   ("int", 3)  ("attr", "k")  ("param", "n")  ("member", "k_")  ("loop", name, place, start, limit, step)
          ("vary", name, place)  ("call", name, …)  ("+", a, b) …"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Symbol = tuple[Any, ...]

UNKNOWN: Symbol = ("unknown",)
NULL: Symbol = ("null",)
CONTEXT: Symbol = ("ctx",)
ZERO: Symbol = ("int", 0)
TENSORS = ("input", "output", "temp", "listed")
BUFFERS = (*TENSORS, "array", "heap", "vec")
SIZES = ("dim", "numel", "bytes", "shape", "size", "dims2")


def number(value: int) -> Symbol:
    return ("int", value)


def is_tensor(symbol: Symbol) -> bool:
    return symbol[0] in TENSORS


def buffer_of(symbol: Symbol) -> Symbol | None:
    """What memory a view, pointer or element belongs to."""
    if symbol[0] in BUFFERS:
        return symbol
    if symbol[0] in ("view", "ptr", "elem") and symbol[1]:
        inner: Symbol = symbol[1][1] if symbol[1][0] == "retyped" else symbol[1]
        return inner if inner[0] in BUFFERS else None
    return None


@lru_cache(maxsize=1 << 16)
def parts(symbol: Symbol) -> frozenset[Symbol]:
    """It and all that it is made of; what limits a loop is no part of its counter."""
    found = {symbol}
    if symbol[0] not in ("loop", "str"):
        for part in symbol[1:]:
            if isinstance(part, tuple) and part:
                found |= parts(part)
    return frozenset(found)


@lru_cache(maxsize=1 << 16)
def origins(symbol: Symbol) -> frozenset[Symbol]:
    """As `parts`, and what its loops run to."""
    found = {symbol}
    for part in symbol[1:]:
        if isinstance(part, tuple) and part:
            found |= origins(part)
    return frozenset(found)


def tensors_in(symbol: Symbol) -> frozenset[Symbol]:
    return frozenset(part for part in origins(symbol) if is_tensor(part))


def data_in(symbol: Symbol, sides: frozenset[str] = frozenset()) -> Iterator[tuple[Symbol, frozenset[str]]]:
    """Elements of inputs that the value comes from, and on which sides the expression itself limits them."""
    kind = symbol[0]
    if kind == "elem":
        if is_tensor(symbol[1]) and symbol[1][0] in ("input", "listed"):
            yield symbol, sides | ({LOW} if str(symbol[3]).startswith(("uint", "bool")) else frozenset())
        return
    if kind in _COMPARISONS or kind in ("dim", "numel", "bytes", "size", "clamp", "str"):
        return
    if kind == "call" and symbol[1] not in ARITHMETIC:
        return  # what a function makes of data is not known
    if kind == "loop":
        if symbol[4]:
            yield from data_in(symbol[4], sides | {LOW})
        return
    if kind == "?:":
        yield from (each for part in symbol[2:] for each in data_in(part, sides) if each[0] not in parts(symbol[1]))
        return
    if kind in ("%", "/", ">>"):
        yield from data_in(symbol[1], sides | ({HIGH} if kind == "%" else frozenset()))
        return
    for part in symbol[1:]:
        if isinstance(part, tuple) and part:
            yield from data_in(part, sides | _LIMITS.get(kind, frozenset()))


LOW, HIGH = "low", "high"
BOTH = frozenset({LOW, HIGH})
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "!", "&&", "||")
_LIMITS = {"min": frozenset({HIGH}), "max": frozenset({LOW}), "&": BOTH, "unsigned": frozenset({LOW})}
ARITHMETIC = (
    "abs",
    "floor",
    "ceil",
    "round",
    "lround",
    "llround",
    "rint",
    "trunc",
    "fabs",
    "floorf",
    "ceilf",
    "roundf",
)


def linear(symbol: Symbol) -> dict[Symbol, int]:
    """A sum: atoms and how often; the constant stands under ()."""
    kind = symbol[0]
    if kind == "int":
        return {(): symbol[1]} if symbol[1] else {}
    if kind in ("+", "-") and len(symbol) == 3:
        return _added(linear(symbol[1]), linear(symbol[2]), 1 if kind == "+" else -1)
    if kind == "unsigned":
        return linear(symbol[1])
    if kind == "neg":
        return _added({}, linear(symbol[1]), -1)
    if kind == "*":
        left, right = linear(symbol[1]), linear(symbol[2])
        for factor, other in ((left, right), (right, left)):
            if set(factor) <= {()}:
                return {atom: count * factor.get((), 0) for atom, count in other.items() if factor.get((), 0)}
        if len(left) == len(right) == 1:  # one order of factors for products
            (a, m), (b, n) = next(iter(left.items())), next(iter(right.items()))
            return {_product(a, b): m * n}
    return {symbol: 1}


def minus(left: Symbol, right: Symbol) -> dict[Symbol, int]:
    return _added(linear(left), linear(right), -1)


def constant(symbol: Symbol) -> int | None:
    sum_ = linear(symbol)
    return sum_.get((), 0) if set(sum_) <= {()} else None


def _product(left: Symbol, right: Symbol) -> Symbol:
    factors = sorted((*_factors(left), *_factors(right)), key=repr)
    return ("product", *factors)


def _factors(symbol: Symbol) -> tuple[Symbol, ...]:
    return symbol[1:] if symbol and symbol[0] == "product" else (symbol,)


def _added(left: dict[Symbol, int], right: dict[Symbol, int], times: int) -> dict[Symbol, int]:
    found = dict(left)
    for atom, count in right.items():
        found[atom] = found.get(atom, 0) + times * count
        if not found[atom]:
            del found[atom]
    return found
