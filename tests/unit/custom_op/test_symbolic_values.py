"""Symbolic values are equal where they are made alike, and sums compare however they are written."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import Dim, Element, Input, NumElements, Rank, Vector
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.composition import loops_in, parts, substitute
from faultlens.custom_op.check.interpret.linear import constant, linear, minus
from faultlens.custom_op.check.interpret.symbols import ONE, ZERO, Binary, Int, Loop, Variable

X, W = Input(0), Input("w")


def test_values_that_are_made_alike_are_one_object() -> None:
    assert Dim(Input(0), Int(1)) is Dim(subject=X, axis=ONE)
    assert Variable("n") is Variable("n", -1)
    assert Vector(7, "float") is not Vector(7, "float", 20)
    assert len({Rank(X), NumElements(X), Rank(W), Rank(X)}) == 3


def test_a_limit_is_no_part_of_a_counter() -> None:
    counter = Loop("i", 40, ZERO, NumElements(W), 1)
    element = Element(X, Binary("+", counter, ONE), "float")
    assert parts(element) == {element, X, element.index, counter, ONE}


def test_counters_come_in_the_order_of_the_source() -> None:
    outer, inner = Loop("i", 10, ZERO, NumElements(X), 1), Loop("k", 20, ZERO, NumElements(W), 1)
    assert loops_in(Binary("+", Binary("*", inner, outer), inner)) == [outer, inner]


def test_substitution_reaches_arguments_of_calls() -> None:
    call = Result("IsVector", (NumElements(X), W))
    assert substitute(call, X, W) is Result("IsVector", (NumElements(W), W))


def test_sums_are_compared_by_their_terms() -> None:
    n, m = NumElements(X), NumElements(W)
    assert linear(Binary("-", Binary("*", Int(2), n), ONE)) == {n: 2, ONE: -1}
    assert minus(Binary("*", n, m), Binary("*", m, n)) == {}
    assert constant(Binary("-", Binary("+", n, Int(3)), n)) == 3
    assert constant(n) is None
