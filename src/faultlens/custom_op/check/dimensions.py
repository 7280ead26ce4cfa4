"""Which dimensions of two inputs the checks make equal, and which they forgot."""

from __future__ import annotations

from collections import Counter

from faultlens.custom_op.check.checked import facts, ranks, told
from faultlens.custom_op.check.interpret.events import Event, Place
from faultlens.custom_op.check.interpret.symbols import Symbol, constant, linear, number


def forgotten(event: Event) -> tuple[Symbol, Symbol] | None:
    """(limit, own): an input is indexed up to a dimension of another one. The two inputs were compared, but in other
    dimensions: these two may differ."""
    if event.on[0] != "input" or not event.by:
        return None
    if event.name in ("matrix", "tensor"):
        pairs = [(index[4], ("dim", event.on, number(at))) for at, index in enumerate(event.by) if _counts(index)]
    else:
        pairs = _of_flat(event) if event.name in ("flat", "ptr", "vec") else []
    return next((pair for pair in pairs if pair[0] and _differ(event.place, *pair)), None)


def _of_flat(event: Event) -> list[tuple[Symbol, Symbol]]:
    """x[i * columns + j]: the one factor of what the loops reach that is no dimension of x."""
    known = ranks(event.place, event.on)
    if known is None or len(known) != 1:
        return []
    own = Counter[Symbol](("dim", event.on, number(at)) for at in range(next(iter(known))))
    reached = _reached(event.by[0])
    if reached is None or len(reached) != 1:
        return []
    ((product, count),) = reached.items()
    factors = Counter[Symbol](product[1:] if product and product[0] == "product" else (product,))
    more, left = list((factors - own).elements()), list((own - factors).elements())
    return [(more[0], left[0])] if count == 1 and len(more) == len(left) == 1 else []


def _reached(index: Symbol) -> dict[Symbol, int] | None:
    """How many elements the loops visit: (m - 1) * k + (k - 1) + 1."""
    total: Symbol = number(1)
    for atom, count in linear(index).items():
        factors: tuple[Symbol, ...] = () if atom == () else atom[1:] if atom[0] == "product" else (atom,)
        counters = [factor for factor in factors if factor[0] == "loop"]
        if count != 1 or len(counters) != 1 or not _counts(counters[0]):
            return None
        rest: Symbol = number(1)
        for factor in factors:
            rest = ("*", rest, factor) if factor is not counters[0] else rest
        total = ("+", total, ("-", ("*", counters[0][4], rest), rest))
    return linear(total)


def _counts(index: Symbol) -> bool:
    return index[0] == "loop" and constant(index[3]) == 0 and index[5] == 1 and bool(index[4])


def _differ(place: Place, limit: Symbol, own: Symbol) -> bool:
    if limit[0] != "dim" or limit[1][0] != "input" or limit[1] == own[1] or limit[2][0] != "int":
        return False
    same: dict[Symbol, Symbol] = {}

    def root(symbol: Symbol) -> Symbol:
        while symbol in same:
            symbol = same[symbol]
        return symbol

    compared = False
    for fact in facts(place):
        speaks = told(fact.condition)
        whole = {(kind, each[1]) for kind in ("whole", "shape", "numel", "bytes") for each in (limit, own)}
        if speaks & whole or {limit, own} <= speaks:
            return False  # more than what is read here
        if (fact.condition[0] == "==") is fact.holds and fact.condition[0] in ("==", "!="):
            left, right = fact.condition[1:]
            compared |= left[0] == right[0] == "dim" and {left[1], right[1]} == {limit[1], own[1]}
            if root(left) != root(right):
                same[root(left)] = root(right)
    return compared and root(limit) != root(own)
