"""What the checks before a line speak of, and what they prove about ranks and emptiness.

A check is believed as soon as it speaks of the thing: a finding on correct code is worse than a miss."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import lru_cache

from faultlens.custom_op.check.interpret.events import Place
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import (
    Symbol,
    constant,
    is_tensor,
    minus,
    number,
    origins,
    parts,
    tensors_in,
)

_ABOUT = ("dims", "dim", "numel", "bytes", "shape", "dtype", "view", "ptr", "elem", "dims2")
SIZES = ("dim", "numel", "bytes", "size", "dims2", "shape")


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


def speaks_of(place: Place, symbol: Symbol) -> bool:
    return any(symbol in parts(fact.condition) for fact in facts(place))


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
            if part == ("whole", tensor) or (part[0] in SIZES and part[1] == tensor):
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
            if limit and any(part[0] in SIZES and part[1] == tensor for part in origins(limit)):
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
