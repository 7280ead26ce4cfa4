"""The rules: one small module each. Adding a rule means adding one file.

Other distributions add theirs as entry points of the group "faultlens.op_rules"."""

from __future__ import annotations

from functools import cache

from faultlens import rules
from faultlens.custom_op.check.rule import Rule

GROUP = "faultlens.op_rules"


@cache
def catalogue() -> tuple[Rule, ...]:
    """One instance of every rule, in the order of their codes."""
    return tuple(sorted(rules.collect(__name__, Rule, GROUP), key=lambda rule: rule.code))


def find(name: str) -> Rule | None:
    """By code ("OP104") or slug, in any case."""
    return rules.find(catalogue(), name)
