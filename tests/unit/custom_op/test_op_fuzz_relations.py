"""Inputs that fit each other, what refusals ask for, and the time that trying may take."""

from __future__ import annotations

import pytest

from faultlens.custom_op.fuzz import fitting, hints, plans
from faultlens.custom_op.fuzz.pace import Pace
from faultlens.custom_op.fuzz.plans import Fit, Plan, Slot
from faultlens.custom_op.fuzz.relations import one_element, ways
from faultlens.custom_op.fuzz.session import Death
from faultlens.custom_op.fuzz.tested import Kernel, OpUnderTest
from faultlens.op_model.op_definition import Definition, Input

SPLIT = OpUnderTest(
    Definition("X", (Input("values", dtype="float32"), Input("splits", dtype="int64")), (), "x", None, ("values",)),
    kernels=(Kernel("CPU"),),
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("splits", (0, 3, 6, 10)),
        ("lengths", (3, 3, 2, 2)),
        ("sorted", (0, 2, 5, 7)),
        ("previous", (-1, 0, 1, 2)),
        ("spans", (0, 0, 10, 10)),
        ("falling", (9, 8, 7, 6)),
        ("all of it", (10,) * 4),
    ],
)
def test_integers_fit_a_size(pattern: str, expected: tuple[int, ...]) -> None:
    assert fitting.values(pattern, 4, 4, 10) == expected


@pytest.mark.parametrize("pattern", fitting.PATTERNS)
def test_every_pattern_takes_every_size(pattern: str) -> None:
    for count, n in ((1, 0), (1, 1), (3, 0), (7, 2)):
        assert len(fitting.values(pattern, count, 1, n)) == count


def test_what_fits_follows_the_size_of_the_other() -> None:
    plan = Plan((), ((Slot((16,)),), (Slot((3,), Fit("splits", 0, 0)),)))
    assert plans.call_of(SPLIT, plan).arguments[1].arrays[0].values == (0, 8, 16)
    found = {plans.call_of(SPLIT, each).arguments[1].arrays[0].values for each in one_element(SPLIT, plan)}
    assert {(0, 1 << 50, 16), (0, -1, 16), (0, 8), (0, 8, 16, 16)} <= found


def test_a_sum_that_starts_again_is_among_the_changes() -> None:
    assert any(sum(each) == 4 + (1 << 32) and min(each) >= 0 for each in fitting.changed((1, 1, 1, 1), 4))


@pytest.mark.parametrize(
    ("words", "ranks", "numbers"),
    [
        ("boxes must be [N, 4]", (2,), (4,)),
        ("values must be a vector", (1,), ()),
        ("input must be 3-D", (3,), (3,)),
        ("x: rank must be 4, at least 3 rows", (4,), (4, 3)),
        ("needs two columns", (), (2,)),
    ],
)
def test_refusals_tell_what_is_wanted(words: str, ranks: tuple[int, ...], numbers: tuple[int, ...]) -> None:
    assert hints.ranks(words) == ranks
    assert hints.numbers(words) == numbers


def test_what_a_refusal_names_is_tried_next() -> None:
    plan = Plan((), ((Slot((4,)),), (Slot((4,)),)))
    found = list(ways(SPLIT, plan, "splits must be [N, 6]"))
    assert found[0] == Plan((), ((Slot((4,)),), (Slot((4, 4)),)))
    assert Plan((), ((Slot((4,)),), (Slot((6,)),))) in found
    assert any(each.slots[1][0].content == Fit("splits", 0, 0) for each in found)


def test_a_hang_makes_impatient_and_is_not_tried_again() -> None:
    pace = Pace(seconds=1000.0, limit=10.0)
    before = pace.patience()
    pace.seen("matrix", Death("endless", "it hangs"), accepted=False)
    pace.seen("vector", None, accepted=True)
    pace.seen("vector", Death("endless", "it hangs"), accepted=False)
    assert pace.patience() < before
    assert pace.is_hopeless("matrix") and not pace.is_hopeless("vector")
    assert pace.at_once > (pace.took(5.0), pace.at_once)[1]
