"""On which sides the checks before a line limit data and attributes."""

from __future__ import annotations

from faultlens.custom_op.check.checked import facts, told
from faultlens.custom_op.check.interpret.buffer_symbols import (
    SIZES,
    ByteSize,
    Dim,
    Element,
    Indices,
    Length,
    NumElements,
    Rank,
    Tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import DataOf, Whole
from faultlens.custom_op.check.interpret.composition import BOTH, HIGH, LOW, Sides, data_in, parts
from faultlens.custom_op.check.interpret.events import ProgramPoint
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import ZERO, Binary, Int, Symbol, Unsigned, is_binary

_FIXED = (Int, NumElements, Dim, Rank, Length, ByteSize, Indices, Tensor)


def limits(point: ProgramPoint, symbol: Symbol) -> Sides:
    """On which sides checks limit an element of a tensor, or an attribute."""
    sides: set[str] = set()
    for fact in facts(point):
        sides |= _sides(fact, symbol)
        if sides >= BOTH:
            break
    return frozenset(sides)


def bounded(point: ProgramPoint, size: Symbol) -> bool:
    """Whether a check limits a size from above by something that is no size of a tensor itself."""
    for fact in facts(point):
        others = {part for part in parts(fact.condition) if isinstance(part, SIZES) and part not in parts(size)}
        if HIGH in _sides(fact, size) and not others:
            return True
    return False


def _sides(fact: Fact, symbol: Symbol) -> Sides:
    match fact.condition:
        case Binary("<" | "<=" | ">" | ">=" as sign, left, right):
            less = (sign in ("<", "<=")) is fact.holds
            return _compared(fact.condition, left, HIGH if less else LOW, symbol) | _compared(
                fact.condition, right, LOW if less else HIGH, symbol
            )
        case Binary("==" | "!=" as sign):
            return BOTH if (sign == "==") is fact.holds and _contains(fact.condition, symbol) else frozenset()
        case Binary("||", left, right):  # one of them holds: each must say the same
            return _sides(Fact(left, fact.holds), symbol) & _sides(Fact(right, fact.holds), symbol)
    return BOTH if _contains(fact.condition, symbol) else frozenset()


def _compared(condition: Binary, side: Symbol, limit: str, symbol: Symbol) -> Sides:
    if not _contains(side, symbol):
        return frozenset()
    found = {limit}
    if ZERO in condition.operands():  # if (i < 0) i += n;
        found.add(LOW)
    if any(isinstance(part, Unsigned) and _contains(part, symbol) for part in parts(side)):
        found |= BOTH if limit == HIGH else {LOW}
    return frozenset(found)


def _contains(condition: Symbol, symbol: Symbol) -> bool:
    """An element stands for all of its tensor: checks run in loops of their own. One with a fixed place does not stand
    for those that a loop visits."""
    if not isinstance(symbol, Element):
        return symbol in told(condition)
    fixed, all_of_it = not _visits(symbol), (Whole(symbol.buffer), DataOf(symbol.buffer))
    return any(
        (isinstance(part, Element) and part.buffer == symbol.buffer and (fixed or _visits(part))) or part in all_of_it
        for part in told(condition)
    )


def _visits(element: Element) -> bool:
    """x(i) of a loop, not x(0) or x(n - 1)."""
    return not all(isinstance(part, _FIXED) or is_binary(part, "+", "-") for part in parts(element.index))


def unlimited(point: ProgramPoint, symbol: Symbol) -> tuple[Element, Sides] | None:
    """The first element in it that nothing limits, and the sides that are open."""
    for data, sides in data_in(symbol):
        known = sides | limits(point, data)
        if not known >= BOTH:
            return data, BOTH - known
    return None
