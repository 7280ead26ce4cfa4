"""The catalogue of causes: one small module per cause, grouped in folders by family.

Adding a cause means adding one file: modules are found by walking this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from faultlens.diagnosis.causes.base import Cause


@cache
def catalogue() -> tuple[Cause, ...]:
    """One instance of every cause, in the order of their codes."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    causes = [cause() for cause in Cause.registered]
    return tuple(sorted(causes, key=lambda cause: cause.code))


def find(name: str) -> Cause | None:
    """By code ("FL203") or slug ("stack-overflow"), in any case."""
    wanted = name.strip().lower()
    return next((cause for cause in catalogue() if wanted in (cause.code.lower(), cause.slug)), None)


def family_title(family: str) -> str:
    """What a family is called: the docstring of its folder."""
    title = (importlib.import_module(f"{__name__}.{family}").__doc__ or "").strip().partition("\n")[0]
    return title.removesuffix(".") or family.replace("_", " ")


def by_family() -> dict[str, tuple[Cause, ...]]:
    """The families in the order of their first code, each with its causes."""
    families: dict[str, list[Cause]] = {}
    for cause in catalogue():
        families.setdefault(cause.family, []).append(cause)
    return {family: tuple(causes) for family, causes in families.items()}
