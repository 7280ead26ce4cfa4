"""How far an index goes, and whether the checks before a line stop it at the end."""

from __future__ import annotations

from faultlens.custom_op.check.checked import facts, told
from faultlens.custom_op.check.interpret.buffer_symbols import SIZES
from faultlens.custom_op.check.interpret.events import ProgramPoint
from faultlens.custom_op.check.interpret.linear import Combination, is_constant, linear, minus
from faultlens.custom_op.check.interpret.symbols import ONE, ZERO, Attr, Binary, Loop, Symbol, is_binary, number


def highest(symbol: Symbol) -> Symbol | None:
    """The largest value of an index whose loops all have limits."""
    return _furthest(symbol, up=True)


def lowest(symbol: Symbol) -> Symbol | None:
    return _furthest(symbol, up=False)


def _furthest(symbol: Symbol, up: bool) -> Symbol | None:
    total: Symbol = ZERO
    for atom, count in linear(symbol).items():
        if isinstance(atom, Loop):
            to_limit = (count > 0) is up
            if to_limit and atom.step != 1:
                return None  # the last step may fall short of the limit
            value = Binary("-", atom.limit, ONE) if to_limit else atom.start
        elif atom == ONE or isinstance(atom, (*SIZES, Attr)):
            value = atom
        else:
            return None
        total = Binary("+", total, Binary("*", number(count), value))
    return total


def lets_end_pass(point: ProgramPoint, index: Symbol, size: Symbol) -> bool:
    """if (i > n) fail: i == n passes, and no other check stops it."""
    over = minus(index, size)
    most: list[int] = []
    for fact in facts(point):
        condition = fact.condition
        if not is_binary(condition, "<", "<=", ">", ">="):
            if index in told(condition):
                return False  # a check that is too hard to read
            continue
        left, right = condition.left, condition.right
        if (condition.sign in ("<", "<=")) is not fact.holds:
            left, right = right, left
        strict = (condition.sign in ("<", ">")) is fact.holds
        apart = _less(minus(left, right), over)
        if is_constant(apart):  # index - size + apart <= 0
            most.append(-apart.get(ONE, 0) - strict)
    return bool(most) and min(most) >= 0


def _less(left: Combination, right: Combination) -> Combination:
    found = {atom: left.get(atom, 0) - right.get(atom, 0) for atom in (*left, *right)}
    return {atom: count for atom, count in found.items() if count}
