"""Which dimensions of two inputs the checks make equal, and which they forgot."""

from __future__ import annotations

from collections import Counter
from typing import TypeGuard

from faultlens.custom_op.check.checked import facts, ranks, told
from faultlens.custom_op.check.interpret.buffer_symbols import ByteSize, Dim, Input, NumElements, Shape
from faultlens.custom_op.check.interpret.call_symbols import Whole
from faultlens.custom_op.check.interpret.events import Event, ProgramPoint
from faultlens.custom_op.check.interpret.linear import Combination, constant, factors, linear
from faultlens.custom_op.check.interpret.symbols import ONE, Binary, Int, Loop, Symbol, is_binary, number


def forgotten(event: Event) -> tuple[Dim, Dim] | None:
    """(limit, own): an input is indexed up to a dimension of another one. The two inputs were compared, but in other
    dimensions: these two may differ."""
    if not isinstance(event.on, Input) or not event.by:
        return None
    if event.name in ("matrix", "tensor"):
        pairs = [(index.limit, Dim(event.on, number(at))) for at, index in enumerate(event.by) if _counts(index)]
    else:
        pairs = _of_flat(event) if event.name in ("flat", "ptr", "vec") else []
    return next((pair for limit, own in pairs if (pair := _differ(event.point, limit, own))), None)


def _of_flat(event: Event) -> list[tuple[Symbol, Dim]]:
    """x[i * columns + j]: the one factor of what the loops reach that is no dimension of x."""
    known = ranks(event.point, event.on)
    if known is None or len(known) != 1:
        return []
    own = [Dim(event.on, number(at)) for at in range(next(iter(known)))]
    reached = _reached(event.by[0])
    if reached is None or len(reached) != 1:
        return []
    ((product, count),) = reached.items()
    more = list((Counter[Symbol](factors(product)) - Counter[Symbol](own)).elements())
    left = [dim for dim in own if dim not in factors(product)]
    return [(more[0], left[0])] if count == 1 and len(more) == len(left) == 1 else []


def _reached(index: Symbol) -> Combination | None:
    """How many elements the loops visit: (m - 1) * k + (k - 1) + 1."""
    total: Symbol = ONE
    for atom, count in linear(index).items():
        counters = [factor for factor in factors(atom) if _counts(factor)]
        if count != 1 or len(counters) != 1 or len([each for each in factors(atom) if isinstance(each, Loop)]) != 1:
            return None
        rest: Symbol = ONE
        for factor in factors(atom):
            rest = Binary("*", rest, factor) if factor is not counters[0] else rest
        total = Binary("+", total, Binary("-", Binary("*", counters[0].limit, rest), rest))
    return linear(total)


def _counts(index: Symbol) -> TypeGuard[Loop]:
    return isinstance(index, Loop) and constant(index.start) == 0 and index.step == 1


def _differ(point: ProgramPoint, limit: Symbol, own: Dim) -> tuple[Dim, Dim] | None:
    """The two, where the checks compare others of the same inputs."""
    if not isinstance(limit, Dim) or not isinstance(limit.subject, Input) or not isinstance(limit.axis, Int):
        return None
    if limit.subject == own.subject:
        return None
    same: dict[Symbol, Symbol] = {}

    def root(symbol: Symbol) -> Symbol:
        while symbol in same:
            symbol = same[symbol]
        return symbol

    compared = False
    whole = {kind(each.subject) for kind in (Whole, Shape, NumElements, ByteSize) for each in (limit, own)}
    for fact in facts(point):
        speaks = told(fact.condition)
        if speaks & whole or {limit, own} <= speaks:
            return None  # more than what is read here
        if is_binary(fact.condition, "==" if fact.holds else "!="):
            left, right = fact.condition.left, fact.condition.right
            if isinstance(left, Dim) and isinstance(right, Dim):
                compared |= {left.subject, right.subject} == {limit.subject, own.subject}
            if root(left) != root(right):
                same[root(left)] = root(right)
    return (limit, own) if compared and root(limit) != root(own) else None
