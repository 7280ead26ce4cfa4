"""The checks: one small module per check, grouped in folders by what they look at.

Adding a check means adding one file. Other distributions add theirs as entry points of the group "faultlens.checks"."""

from __future__ import annotations

from functools import cache

from faultlens import rules
from faultlens.doctor.check import Check

GROUP = "faultlens.checks"


@cache
def catalogue() -> tuple[Check, ...]:
    """One instance of every check, in the order in which they are shown."""
    checks = rules.collect(__name__, Check, GROUP)  # type: ignore[type-abstract]
    return tuple(sorted(checks, key=lambda check: (check.position, check.name)))
