"""What the checks before a line prove: ranks, sizes, limits of data, and which sizes belong together.

A check is believed as soon as it speaks of the thing: a finding on correct code is worse than a miss."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from faultlens.oplab.reading.events import Place
from faultlens.oplab.reading.state import Fact
from faultlens.oplab.reading.symbols import (
    BOTH,
    HIGH,
    LOW,
    TENSORS,
    Symbol,
    constant,
    data_in,
    is_tensor,
    linear,
    minus,
    number,
    origins,
    parts,
    tensors_in,
)

_ABOUT = ("dims", "dim", "numel", "bytes", "shape", "dtype", "view", "ptr", "elem", "dims2")
_SIZES = ("dim", "numel", "bytes", "size", "dims2", "shape")
_FIXED = ("int", "numel", "dim", "dims", "size", "bytes", "tuple", "+", "-")


@lru_cache(maxsize=1 << 14)
def told(condition: Symbol) -> frozenset[Symbol]:
    """What a condition speaks of; ("whole", tensor) where a function that is not known was given all of it."""
    found: set[Symbol] = set()
    _collect(condition, found)
    return frozenset(found)


def _collect(symbol: Symbol, found: set[Symbol]) -> None:
    kind = symbol[0]
    if kind == "call" and str(symbol[1]).startswith("Is"):  # IsVector(shape) tells the rank and nothing else
        for part in parts(symbol):
            if part[0] in ("shape", "dims"):
                found.add(("dims", part[1]))
                found |= {("numel", part[1])} if symbol[1] in ("IsScalar", "IsLegacyScalar") else set()
            elif part[0] == "call" and part[1] == "IsSameSize":
                break
        return
    found.add(symbol)
    if kind in ("loop", "str"):
        return
    for child in symbol[1:]:
        if isinstance(child, tuple) and child:
            if kind not in _ABOUT and is_tensor(child):
                found.add(("whole", child))
            if kind == "call" and child[0] in ("ptr", "view") and is_tensor(child[1]):
                found.add(("data", child[1]))
            _collect(child, found)


def facts(place: Place) -> Iterator[Fact]:
    """Without those that only say that a loop runs."""
    return (fact for fact in place.facts if fact.condition[0] != "runs")


def rank_known(place: Place, tensor: Symbol, seen: frozenset[Symbol] = frozenset()) -> bool:
    shape = place.shapes.get(tensor)
    if tensor[0] in ("output", "temp"):
        if shape is None or shape[0] != "shape":
            return True  # made here, of something that is known or too hard to follow
        return rank_known(place, shape[1], seen | {tensor})
    if not is_tensor(tensor) or tensor in seen:
        return not is_tensor(tensor)
    for fact in facts(place):
        speaks = told(fact.condition)
        if ("whole", tensor) in speaks:
            return True
        if speaks & {("dims", tensor), ("shape", tensor)} or any(part[:2] == ("dim", tensor) for part in speaks):
            other = _other_tensor(fact, tensor)
            if other is None or rank_known(place, other, seen | {tensor}):
                return True
    return False


_RANKS = {"IsScalar": {0}, "IsVector": {1}, "IsMatrix": {2}, "IsSquareMatrix": {2},
          "IsVectorOrHigher": set(range(1, 12)), "IsMatrixOrHigher": set(range(2, 12))}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def ranks(place: Place, tensor: Symbol) -> frozenset[int] | None:
    """The ranks that the checks leave; None where there is none, or one that is too hard to read."""
    checked = False
    left = set(range(12))  # TensorFlow's limit is 254: the last stands for all above
    for fact in facts(place):
        speaks = told(fact.condition)
        if ("whole", tensor) in speaks or ("shape", tensor) in speaks:
            return None
        if not _asks_rank(fact.condition, tensor):
            continue
        checked |= fact.condition[0] != "alive"
        allowed = [_allows(fact.condition, tensor, rank) for rank in range(12)]
        if None in allowed:
            return None
        left &= {rank for rank in range(12) if allowed[rank] is fact.holds}
    return frozenset(left) if checked else None


def _asks_rank(symbol: Symbol, tensor: Symbol) -> bool:
    """x.dim_size(x.dims() - 1) == 2 asks for a size."""
    if symbol == ("dims", tensor) or (symbol[0] == "call" and symbol[1] in _RANKS and ("shape", tensor) in symbol):
        return True
    return symbol[0] not in ("dim", "loop", "elem") and any(
        isinstance(part, tuple) and part and _asks_rank(part, tensor) for part in symbol[1:]
    )


def _allows(condition: Symbol, tensor: Symbol, rank: int) -> bool | None:
    """Whether the condition holds for a tensor of this rank; None where more than the rank decides."""
    kind = condition[0]
    if kind == "alive":
        return _allows(condition[1], tensor, rank)
    if kind == "!":
        inner = _allows(condition[1], tensor, rank)
        return None if inner is None else not inner
    if kind in ("&&", "||"):
        sides = [_allows(side, tensor, rank) for side in condition[1:]]
        if (kind == "||") in sides:
            return bool(kind == "||")
        return None if None in sides else bool(kind == "&&")
    if kind == "call" and condition[1] in _RANKS and ("shape", tensor) in condition[2:]:
        return bool(rank in _RANKS[condition[1]])
    if kind in _COMPARE and len(condition) == 3:
        apart = minus(condition[1], condition[2])
        count = apart.pop(("dims", tensor), 0)
        if abs(count) == 1 and set(apart) <= {()}:
            return _COMPARE[kind](count * rank + apart.get((), 0), 0)
    return None


def one_element(place: Place, tensor: Symbol) -> bool:
    """Whether something was asked about its number of elements."""
    return rank_known(place, tensor) or any(
        speaks & {("numel", tensor), ("bytes", tensor)}
        for speaks in map(told, (fact.condition for fact in facts(place)))
    )


def size_told(place: Place, tensor: Symbol) -> bool:
    """Whether any check before speaks of its size."""
    for fact in facts(place):
        for part in told(fact.condition):
            if part == ("whole", tensor) or (part[0] in _SIZES and part[1] == tensor):
                return True
    return False


def not_empty(place: Place, tensor: Symbol, seen: frozenset[Symbol] = frozenset()) -> bool:
    """Whether it was asked for its size, other than for the same size as another tensor."""
    if tensor in seen:
        return False
    shape = place.shapes.get(tensor)
    if shape is not None:
        if shape[0] == "shape":
            return not_empty(place, shape[1], seen | {tensor})
        if shape[0] == "mkshape":
            return all((constant(dim) or 0) > 0 or _asked(place, dim) or constant(dim) is None for dim in shape[1:])
        return True
    for fact in place.facts:
        if fact.condition[0] == "runs":
            limit = fact.condition[2] or ()
            if limit and any(part[0] in _SIZES and part[1] == tensor for part in origins(limit)):
                return True
            continue
        for part in told(fact.condition):
            if part == ("whole", tensor) or (part == ("dims", tensor) and _is_scalar(fact)):
                return True
            if part[0] in ("numel", "dim", "bytes", "dims2") and part[1] == tensor and above_zero(fact, part):
                other = _other_tensor(fact, tensor)
                if other is None or not_empty(place, other, seen | {tensor}):
                    return True
            if part == ("shape", tensor) and part in fact.condition[1:] and fact.condition[0] == "==":
                other = _other_tensor(fact, tensor)
                if other is not None and not_empty(place, other, seen | {tensor}):
                    return True
    return False


def _asked(place: Place, symbol: Symbol) -> bool:
    """Whether a size that is made of sizes of tensors is known not to be zero."""
    return all(not_empty(place, tensor) for tensor in tensors_in(symbol))


def above_zero(fact: Fact, symbol: Symbol) -> bool:
    """Whether the fact can exclude that it is 0: `n > 0` does, `n <= 10` and `n >= 0` do not."""
    condition, holds = fact.condition, fact.holds
    kind = condition[0]
    if kind in ("&&", "||"):
        both = [above_zero(Fact(side, holds), symbol) for side in condition[1:] if symbol in parts(side)]
        return any(both)
    if kind not in ("<", "<=", ">", ">=", "==", "!="):
        return kind != "call" or symbol in condition
    left, right = condition[1], condition[2]
    if symbol not in parts(left):
        left, right = right, left
        kind = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(kind, kind)
    if not holds:
        kind = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[kind]
    known = constant(right)
    if kind == "==":
        return known != 0
    if kind == "!=":
        return known == 0 or known is None
    if kind in ("<", "<="):
        return left[0] in ("-", "/", "%") and symbol in parts(left[2])
    return known is None or known > 0 or (kind == ">" and known >= 0) or left != symbol


def _is_scalar(fact: Fact) -> bool:
    return fact.holds and fact.condition[0] == "==" and number(0) in fact.condition


def _other_tensor(fact: Fact, tensor: Symbol) -> Symbol | None:
    """The other one, where the fact only says that two tensors are alike."""
    if fact.condition[0] != "==" or not fact.holds or len(fact.condition) != 3:
        return None
    others: list[set[Symbol]] = [
        {part[1] for part in parts(side) if part[0] in ("dims", "shape", "numel", "dim") and is_tensor(part[1])}
        for side in fact.condition[1:]
    ]
    left, right = others
    if left == {tensor} and len(right) == 1 and right != left:
        return next(iter(right))
    if right == {tensor} and len(left) == 1 and right != left:
        return next(iter(left))
    return None


# ------------------------------------------------------------------------------------------- limits


def limits(place: Place, symbol: Symbol) -> frozenset[str]:
    """On which sides checks limit an element of a tensor, or an attribute."""
    sides: set[str] = set()
    for fact in facts(place):
        sides |= _sides(fact, symbol)
        if sides >= BOTH:
            break
    return frozenset(sides)


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


def speaks_of(place: Place, symbol: Symbol) -> bool:
    return any(symbol in parts(fact.condition) for fact in facts(place))


def unlimited(place: Place, symbol: Symbol) -> tuple[Symbol, frozenset[str]] | None:
    """The first element in it that nothing limits, and the sides that are open."""
    for data, sides in data_in(symbol):
        known = sides | limits(place, data)
        if not known >= BOTH:
            return data, BOTH - known
    return None


# -------------------------------------------------------------------------------------------- sizes


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
        if (part[0] in _SIZES or part[0] == "whole") and isinstance(part[1], tuple):
            found.append(part[1])
        elif part[0] in ("attr", "param", "member", "vary", "var", "name"):
            found.append(part)
    return found


def highest(symbol: Symbol) -> Symbol | None:
    """The largest value of an index whose loops all have limits."""
    return _furthest(symbol, up=True)


def lowest(symbol: Symbol) -> Symbol | None:
    return _furthest(symbol, up=False)


def _furthest(symbol: Symbol, up: bool) -> Symbol | None:
    total: Symbol = number(0)
    for atom, count in linear(symbol).items():
        if atom == ():
            total = ("+", total, number(count))
            continue
        if atom[0] == "loop":
            to_limit = (count > 0) is up
            limit = atom[4] if to_limit else atom[3]
            if limit is None:
                return None
            value: Symbol = ("-", limit, number(1)) if to_limit else limit
            if to_limit and atom[5] != 1:
                return None  # the last step may fall short of the limit
        elif atom[0] in _SIZES or atom[0] in ("attr",):
            value = atom
        else:
            return None
        total = ("+", total, ("*", number(count), value))
    return total


def lets_end_pass(place: Place, index: Symbol, size: Symbol) -> bool:
    """if (i > n) fail: i == n passes, and no other check stops it."""
    over = minus(index, size)
    most: list[int] = []
    for fact in facts(place):
        kind, holds = fact.condition[0], fact.holds
        if kind not in ("<", "<=", ">", ">="):
            if index in told(fact.condition):
                return False  # a check that is too hard to read
            continue
        left, right = fact.condition[1:] if (kind in ("<", "<=")) is holds else fact.condition[:0:-1]
        strict = (kind in ("<", ">")) is holds
        apart = _less(minus(left, right), over)
        if set(apart) <= {()}:  # index - size + apart <= 0
            most.append(-apart.get((), 0) - strict)
    return bool(most) and min(most) >= 0


def _less(left: dict[Symbol, int], right: dict[Symbol, int]) -> dict[Symbol, int]:
    found = {atom: left.get(atom, 0) - right.get(atom, 0) for atom in (*left, *right)}
    return {atom: count for atom, count in found.items() if count}


def loops_in(symbol: Symbol) -> list[Symbol]:
    return [part for part in parts(symbol) if part[0] == "loop"]
