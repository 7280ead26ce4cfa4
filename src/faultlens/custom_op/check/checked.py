"""What the checks before a line speak of, and what they prove about ranks and emptiness.

A check is believed as soon as it speaks of the thing: a finding on correct code is worse than a miss."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeGuard

from faultlens.custom_op.check.interpret.buffer_symbols import (
    SIZES,
    Access,
    ByteSize,
    Dim,
    DType,
    Element,
    NumElements,
    Output,
    Pointer,
    Rank,
    Shape,
    ShapeOf,
    Temporary,
    View,
    ViewDim,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_symbols import DataOf, Result, Runs, Survived, Whole
from faultlens.custom_op.check.interpret.composition import origins, parts, tensors_in
from faultlens.custom_op.check.interpret.events import ProgramPoint
from faultlens.custom_op.check.interpret.linear import constant, is_constant, minus
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import ONE, ZERO, Binary, Loop, Not, Symbol, is_binary

_ABOUT = (Rank, Dim, NumElements, ByteSize, Shape, DType, ViewDim, Access)


@lru_cache(maxsize=1 << 14)
def told(condition: Symbol) -> frozenset[Symbol]:
    """What a condition speaks of; Whole(tensor) where a function that is not known was given all of it."""
    found: set[Symbol] = set()
    _collect(condition, found)
    return frozenset(found)


def _collect(symbol: Symbol, found: set[Symbol]) -> None:
    if isinstance(symbol, Result) and symbol.function.startswith("Is"):
        found |= _asked_rank(symbol)
        return
    found.add(symbol)
    if isinstance(symbol, Loop):
        return
    for child in symbol.operands():
        if is_tensor(child) and not isinstance(symbol, _ABOUT):
            found.add(Whole(child))
        if isinstance(symbol, Result) and isinstance(child, (Pointer, View)) and is_tensor(child.buffer):
            found.add(DataOf(child.buffer))
        _collect(child, found)


def _asked_rank(call: Result) -> set[Symbol]:
    """IsVector(shape) tells the rank and nothing else."""
    found: set[Symbol] = set()
    for part in parts(call):
        if isinstance(part, (Shape, Rank)):
            found.add(Rank(part.subject))
            found |= {NumElements(part.subject)} if call.function in ("IsScalar", "IsLegacyScalar") else set()
        elif isinstance(part, Result) and part.function == "IsSameSize":
            break
    return found


def facts(point: ProgramPoint) -> Iterator[Fact]:
    """Without those that only say that a loop runs."""
    return (fact for fact in point.facts if not isinstance(fact.condition, Runs))


def speaks_of(point: ProgramPoint, symbol: Symbol) -> bool:
    return any(symbol in parts(fact.condition) for fact in facts(point))


def rank_known(point: ProgramPoint, tensor: Symbol, seen: frozenset[Symbol] = frozenset()) -> bool:
    shape = point.shapes.get(tensor)
    if isinstance(tensor, (Output, Temporary)):
        if not isinstance(shape, Shape):
            return True  # made here, of something that is known or too hard to follow
        return rank_known(point, shape.subject, seen | {tensor})
    if not is_tensor(tensor) or tensor in seen:
        return not is_tensor(tensor)
    whole, asked = Whole(tensor), {Rank(tensor), Shape(tensor)}
    for fact in facts(point):
        speaks = told(fact.condition)
        if whole in speaks:
            return True
        if speaks & asked or any(isinstance(part, Dim) and part.subject == tensor for part in speaks):
            other = _other_tensor(fact, tensor)
            if other is None or rank_known(point, other, seen | {tensor}):
                return True
    return False


_RANKS = {"IsScalar": {0}, "IsVector": {1}, "IsMatrix": {2}, "IsSquareMatrix": {2},
          "IsVectorOrHigher": set(range(1, 12)), "IsMatrixOrHigher": set(range(2, 12))}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def ranks(point: ProgramPoint, tensor: Symbol) -> frozenset[int] | None:
    """The ranks that the checks leave; None where there is none, or one that is too hard to read."""
    checked = False
    left = set(range(12))  # TensorFlow's limit is 254: the last stands for all above
    all_of_it = {Whole(tensor), Shape(tensor)}
    for fact in facts(point):
        if not all_of_it.isdisjoint(told(fact.condition)):
            return None
        if not _asks_rank(fact.condition, tensor):
            continue
        checked |= not isinstance(fact.condition, Survived)
        allowed = _allowed(fact.condition, tensor)
        if None in allowed:
            return None
        left &= {rank for rank in range(12) if allowed[rank] is fact.holds}
    return frozenset(left) if checked else None


@lru_cache(maxsize=1 << 12)
def _allowed(condition: Symbol, tensor: Symbol) -> tuple[bool | None, ...]:
    """What `_allows` says of each rank."""
    return tuple(_allows(condition, tensor, rank) for rank in range(12))


def _asks_rank(symbol: Symbol, tensor: Symbol) -> bool:
    """x.dim_size(x.dims() - 1) == 2 asks for a size."""
    if (isinstance(symbol, Rank) and symbol.subject == tensor) or _is_rank_test(symbol, tensor):
        return True
    return not isinstance(symbol, (Dim, Loop, Element)) and any(_asks_rank(part, tensor) for part in symbol.operands())


def _is_rank_test(symbol: Symbol, tensor: Symbol) -> TypeGuard[Result]:
    return isinstance(symbol, Result) and symbol.function in _RANKS and Shape(tensor) in symbol.arguments


def _allows(condition: Symbol, tensor: Symbol, rank: int) -> bool | None:
    """Whether the condition holds for a tensor of this rank; None where more than the rank decides."""
    match condition:
        case Survived(inner):
            return _allows(inner, tensor, rank)
        case Not(value):
            known = _allows(value, tensor, rank)
            return None if known is None else not known
        case Binary("&&" | "||" as sign, left, right):
            sides = [_allows(side, tensor, rank) for side in (left, right)]
            if (sign == "||") in sides:
                return sign == "||"
            return None if None in sides else sign == "&&"
        case Result(function) if _is_rank_test(condition, tensor):
            return rank in _RANKS[function]
        case Binary(sign, left, right) if sign in _COMPARE:
            apart = minus(left, right)
            count = apart.pop(Rank(tensor), 0)
            if abs(count) == 1 and is_constant(apart):
                return _COMPARE[sign](count * rank + apart.get(ONE, 0), 0)
    return None


def one_element(point: ProgramPoint, tensor: Symbol) -> bool:
    """Whether something was asked about its number of elements."""
    return rank_known(point, tensor) or any(
        speaks & {NumElements(tensor), ByteSize(tensor)}
        for speaks in map(told, (fact.condition for fact in facts(point)))
    )


def size_told(point: ProgramPoint, tensor: Symbol) -> bool:
    """Whether any check before speaks of its size."""
    return any(
        part == Whole(tensor) or (isinstance(part, SIZES) and part.subject == tensor)
        for fact in facts(point)
        for part in told(fact.condition)
    )


def not_empty(point: ProgramPoint, tensor: Symbol, seen: frozenset[Symbol] = frozenset()) -> bool:
    """Whether it was asked for its size, other than for the same size as another tensor."""
    if tensor in seen:
        return False
    match point.shapes.get(tensor):
        case None:
            return any(_excludes_empty(fact, point, tensor, seen | {tensor}) for fact in point.facts)
        case Shape(other):
            return not_empty(point, other, seen | {tensor})
        case ShapeOf(dims):
            return all((constant(dim) or 0) > 0 or _asked(point, dim) or constant(dim) is None for dim in dims)
    return True


def _excludes_empty(fact: Fact, point: ProgramPoint, tensor: Symbol, seen: frozenset[Symbol]) -> bool:
    if isinstance(fact.condition, Runs):
        return any(isinstance(part, SIZES) and part.subject == tensor for part in origins(fact.condition.limit))
    speaks = told(fact.condition)
    if Whole(tensor) in speaks or (Rank(tensor) in speaks and _is_scalar(fact)):
        return True
    if Shape(tensor) in speaks and is_binary(fact.condition, "==") and Shape(tensor) in fact.condition.operands():
        other = _other_tensor(fact, tensor)
        if other is not None and not_empty(point, other, seen):
            return True
    for part in speaks:
        if (
            isinstance(part, (NumElements, Dim, ByteSize, ViewDim))
            and part.subject == tensor
            and above_zero(fact, part)
        ):
            other = _other_tensor(fact, tensor)
            if other is None or not_empty(point, other, seen):
                return True
    return False


def _asked(point: ProgramPoint, symbol: Symbol) -> bool:
    """Whether a size that is made of sizes of tensors is known not to be zero."""
    return all(not_empty(point, tensor) for tensor in tensors_in(symbol))


_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def above_zero(fact: Fact, symbol: Symbol) -> bool:
    """Whether the fact can exclude that it is 0: `n > 0` does, `n <= 10` and `n >= 0` do not."""
    match fact.condition:
        case Binary("&&" | "||", left, right):
            return any(above_zero(Fact(side, fact.holds), symbol) for side in (left, right) if symbol in parts(side))
        case Binary(sign, left, right) if sign in _NEGATED:
            return _compares_above_zero(sign if fact.holds else _NEGATED[sign], left, right, symbol)
        case Result(_, arguments):
            return symbol in arguments
    return True


def _compares_above_zero(sign: str, left: Symbol, right: Symbol, symbol: Symbol) -> bool:
    if symbol not in parts(left):
        left, right = right, left
        sign = _FLIPPED.get(sign, sign)
    known = constant(right)
    if sign == "==":
        return known != 0
    if sign == "!=":
        return known == 0 or known is None
    if sign in ("<", "<="):
        return is_binary(left, "-", "/", "%") and symbol in parts(left.right)
    return known is None or known > 0 or (sign == ">" and known >= 0) or left != symbol


def _is_scalar(fact: Fact) -> bool:
    return fact.holds and is_binary(fact.condition, "==") and ZERO in fact.condition.operands()


def _other_tensor(fact: Fact, tensor: Symbol) -> Symbol | None:
    """The other one, where the fact only says that two tensors are alike."""
    if not is_binary(fact.condition, "==") or not fact.holds:
        return None
    left, right = _described(fact.condition.left), _described(fact.condition.right)
    if left == {tensor} and len(right) == 1 and right != left:
        return next(iter(right))
    if right == {tensor} and len(left) == 1 and right != left:
        return next(iter(left))
    return None


def _described(symbol: Symbol) -> set[Symbol]:
    """The tensors whose ranks and sizes it is made of."""
    return {
        part.subject
        for part in parts(symbol)
        if isinstance(part, (Rank, Shape, NumElements, Dim)) and is_tensor(part.subject)
    }
