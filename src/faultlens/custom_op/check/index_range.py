"""How far an index goes, and whether the checks before a line stop it at the end."""

from __future__ import annotations

from faultlens.custom_op.check.checked import SIZES, facts, told
from faultlens.custom_op.check.interpret.events import Place
from faultlens.custom_op.check.interpret.symbols import Symbol, linear, minus, number, parts


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
        elif atom[0] in SIZES or atom[0] in ("attr",):
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
