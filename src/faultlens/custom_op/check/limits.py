"""On which sides the checks before a line limit data and attributes."""

from __future__ import annotations

from faultlens.custom_op.check.checked import facts, told
from faultlens.custom_op.check.interpret.events import Place
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import BOTH, HIGH, LOW, SIZES, TENSORS, Symbol, data_in, number, parts

_FIXED = ("int", "numel", "dim", "dims", "size", "bytes", "tuple", "+", "-")


def limits(place: Place, symbol: Symbol) -> frozenset[str]:
    """On which sides checks limit an element of a tensor, or an attribute."""
    sides: set[str] = set()
    for fact in facts(place):
        sides |= _sides(fact, symbol)
        if sides >= BOTH:
            break
    return frozenset(sides)


def bounded(place: Place, size: Symbol) -> bool:
    """Whether a check limits a size from above by something that is no size of a tensor itself."""
    for fact in facts(place):
        others = {part for part in parts(fact.condition) if part[0] in SIZES and part not in parts(size)}
        if HIGH in _sides(fact, size) and not others:
            return True
    return False


def _sides(fact: Fact, symbol: Symbol) -> frozenset[str]:
    condition, holds = fact.condition, fact.holds
    kind = condition[0]
    if kind in ("<", "<=", ">", ">="):
        less = (kind in ("<", "<=")) is holds
        found: set[str] = set()
        for side, limit in ((condition[1], HIGH if less else LOW), (condition[2], LOW if less else HIGH)):
            if _contains(side, symbol):
                found.add(limit)
                if number(0) in condition:  # if (i < 0) i += n;
                    found.add(LOW)
                if any(part[0] == "unsigned" and _contains(part, symbol) for part in parts(side)):
                    found |= BOTH if limit == HIGH else {LOW}
        return frozenset(found)
    if kind in ("==", "!="):
        return BOTH if (kind == "==") is holds and _contains(condition, symbol) else frozenset()
    if kind == "||":  # one of them holds: each must say the same
        return frozenset(_sides(Fact(condition[1], holds), symbol) & _sides(Fact(condition[2], holds), symbol))
    if kind == "&&":
        return BOTH if _contains(condition, symbol) else frozenset()
    return BOTH if _contains(condition, symbol) else frozenset()


def _contains(condition: Symbol, symbol: Symbol) -> bool:
    """An element stands for all of its tensor: checks run in loops of their own. One with a fixed place does not stand
    for those that a loop visits."""
    if symbol[0] == "elem":
        fixed = not _visits(symbol)
        return any(
            (part[0] == "elem" and part[1] == symbol[1] and (fixed or _visits(part)))
            or part in (("whole", symbol[1]), ("data", symbol[1]))
            for part in told(condition)
        )
    return symbol in told(condition)


def _visits(element: Symbol) -> bool:
    """x(i) of a loop, not x(0) or x(n - 1)."""
    return any(part[0] not in (*_FIXED, *TENSORS) for part in parts(element[2]))


def unlimited(place: Place, symbol: Symbol) -> tuple[Symbol, frozenset[str]] | None:
    """The first element in it that nothing limits, and the sides that are open."""
    for data, sides in data_in(symbol):
        known = sides | limits(place, data)
        if not known >= BOTH:
            return data, BOTH - known
    return None
