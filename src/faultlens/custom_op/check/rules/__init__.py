"""The rules: one small module each. Adding a rule means adding one file: modules are found by walking this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from faultlens.custom_op.check.rule import Rule


@cache
def catalogue() -> tuple[Rule, ...]:
    """One instance of every rule, in the order of their codes."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return tuple(sorted((rule() for rule in Rule.registered), key=lambda rule: rule.code))


def find(name: str) -> Rule | None:
    """By code ("OP104") or slug, in any case."""
    wanted = name.strip().lower()
    return next((rule for rule in catalogue() if wanted in (rule.code.lower(), rule.slug)), None)
