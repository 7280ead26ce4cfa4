"""Symbolic values as linear combinations of others, so that sums that are written differently compare equal."""

from __future__ import annotations

from collections.abc import Iterable

from faultlens.custom_op.check.interpret.symbols import ONE, Binary, Int, Negative, Product, Symbol, Unsigned

Combination = dict[Symbol, int]  # atoms and their coefficients; that of ONE is the constant


def linear(symbol: Symbol) -> Combination:
    match symbol:
        case Int(value):
            return {ONE: value} if value else {}
        case Binary("+" | "-", left, right):
            return _added(linear(left), linear(right), 1 if symbol.sign == "+" else -1)
        case Unsigned(value):
            return linear(value)
        case Negative(value):
            return _added({}, linear(value), -1)
        case Binary("*", left, right):
            product = _multiplied(linear(left), linear(right))
            return product if product is not None else {symbol: 1}
    return {symbol: 1}


def minus(left: Symbol, right: Symbol) -> Combination:
    return _added(linear(left), linear(right), -1)


def is_constant(combination: Combination) -> bool:
    return not combination or (len(combination) == 1 and ONE in combination)


def constant(symbol: Symbol) -> int | None:
    combination = linear(symbol)
    return combination.get(ONE, 0) if is_constant(combination) else None


def _multiplied(left: Combination, right: Combination) -> Combination | None:
    """None where the product is no linear combination."""
    for factor, other in ((left, right), (right, left)):
        if is_constant(factor):
            times = factor.get(ONE, 0)
            return {atom: count * times for atom, count in other.items() if times}
    if len(left) == len(right) == 1:  # one order of factors for products
        (a, m), (b, n) = next(iter(left.items())), next(iter(right.items()))
        return {Product(tuple(sorted((*factors(a), *factors(b)), key=repr))): m * n}
    return None


def factors(atom: Symbol) -> tuple[Symbol, ...]:
    return atom.factors if isinstance(atom, Product) else (atom,)


def _added(left: Combination, right: Combination, times: int) -> Combination:
    found = dict(left)
    for atom, count in right.items():
        found[atom] = found.get(atom, 0) + times * count
        if not found[atom]:
            del found[atom]
    return found


def product(values: Iterable[Symbol]) -> Symbol:
    """Of sizes; 1 where there are none."""
    made: Symbol = ONE
    for value in values:
        made = value if made == ONE else Binary("*", made, value)
    return made
