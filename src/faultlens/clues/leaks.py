"""What grew while the program ran, in words."""

from __future__ import annotations

from faultlens.crash import Crash, Growth, GrowthKind
from faultlens.sizes import in_words

COUNTED: frozenset[GrowthKind] = frozenset({"open files", "threads"})


def growth_of(crash: Crash, *kinds: GrowthKind) -> Growth | None:
    return next((growth for growth in crash.growth if growth.what in kinds), None)


def in_short(growth: Growth) -> str:
    """ "memory grew by 1.1 MiB a step (since step 40)"."""
    what = f"its number of {growth.what}" if growth.what in COUNTED else growth.what
    since = f" (since step {growth.since:,})" if growth.since and growth.per_step is not None else ""
    return f"{what} grew by {rate(growth)}{since}"


def rate(growth: Growth) -> str:
    """ "1.1 MiB a step"."""
    value, unit = (growth.per_second, "second") if growth.per_step is None else (growth.per_step, "step")
    if growth.what in COUNTED:
        return (
            f"{value:.0f} a {unit}"
            if value >= 9.5 or abs(value - round(value)) < 0.1 <= value
            else f"{value:.2g} a {unit}"
        )
    return f"{in_words(round(value))} a {unit}"


def told(growth: Growth) -> str:
    """One line for the user, while the program runs."""
    held = f": {growth.holders[0].text}" if growth.holders else ", and what holds it could not be seen"
    return in_short(growth).replace(" grew by ", " grows by ", 1) + held


def span(growth: Growth) -> str:
    """ "from 410 MiB to 1.9 GiB in 1,400 steps"."""
    before, after = (
        (f"{growth.before:,}", f"{growth.after:,}")
        if growth.what in COUNTED
        else (in_words(growth.before), in_words(growth.after))
    )
    over = f" in {growth.steps:,} steps" if growth.steps else ""
    return f"from {before} to {after}{over}"
