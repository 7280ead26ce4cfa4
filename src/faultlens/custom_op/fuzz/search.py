"""Inputs that differ in several things from what an op accepts, drawn by hypothesis: seeded, so that a search can be
repeated.

hypothesis draws, and what dies is made smaller by `op_model/shrink_op.py`: every attempt that still dies costs a
process, and steps that know what a shape is need a tenth of the attempts that shrinking a stream of bytes takes."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Protocol

from faultlens.custom_op.fuzz import plans
from faultlens.custom_op.fuzz.changes import variants
from faultlens.custom_op.fuzz.plans import Plan
from faultlens.custom_op.fuzz.tested import OpUnderTest
from faultlens.errors import FaultlensError

EXAMPLES, BATCH = 20, 24  # of a round: so many times so many inputs
STEPS = 4
RECENT = 200


class Trying(Protocol):
    accepted: list[Plan]

    @property
    def is_over(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    def try_batch(self, batch: list[Plan]) -> None: ...


def search(op: OpUnderTest, trying: Trying) -> None:
    try:
        import hypothesis
        from hypothesis.configuration import set_hypothesis_home_dir
    except ImportError as error:
        raise FaultlensError("Testing ops needs hypothesis.", "pip install 'faultlens[ops]'") from error
    set_hypothesis_home_dir(os.path.join(tempfile.gettempdir(), "faultlens-hypothesis"))  # not where the user works
    strategy = hypothesis.strategies
    changes: dict[Plan, list[Plan]] = {}
    if next(variants(op, plans.plainest(op)), None) is None:
        return  # without inputs and attributes there is nothing to change

    def changed(draw: Any, plan: Plan) -> Plan:
        """One of its variants, which are remembered: making them all takes a millisecond."""
        if plan not in changes:
            if len(changes) > RECENT:
                changes.clear()
            changes[plan] = [each for each in variants(op, plan) if plans.is_affordable(each)]
        return draw(strategy.sampled_from(changes[plan])) if changes[plan] else plan

    @strategy.composite
    def outlines(draw: Any) -> Plan:
        plan: Plan = draw(strategy.sampled_from(bases))
        for _ in range(draw(strategy.integers(1, STEPS))):
            plan = changed(draw, plan)
        return plan

    number = 0
    while not trying.is_over:
        number += 1
        bases = trying.accepted[-RECENT:] or [plans.plainest(op)]  # the same for a whole round

        @hypothesis.seed(trying.seed * 1_000_003 + number)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(strategy.data())
        def one_round(data: Any) -> None:
            batch = [data.draw(outlines()) for _ in range(BATCH)]
            if not trying.is_over:
                trying.try_batch(batch)

        one_round()
