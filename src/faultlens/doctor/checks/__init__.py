"""The checks: one small module per check, grouped in folders by what they look at.

Adding a check means adding one file: modules are found by walking this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from faultlens.doctor.check import Check


@cache
def catalogue() -> tuple[Check, ...]:
    """One instance of every check, in the order in which they are shown."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return tuple(sorted((check() for check in Check.registered), key=lambda check: (check.position, check.name)))
