"""The catalogue of causes: one small module per cause, grouped in folders by family.

Adding a cause means adding one file. Other distributions add theirs as entry points of the group "faultlens.causes"."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from faultlens import rules
from faultlens.diagnosis.causes.base import Cause
from faultlens.diagnosis.causes.foreign import ForeignCause

GROUP = "faultlens.causes"


@cache
def catalogue() -> tuple[Cause, ...]:
    """One instance of every cause, in the order of their codes."""
    causes = rules.collect(__name__, Cause, GROUP)  # type: ignore[type-abstract]
    guarded = (cause if _is_own(cause) else ForeignCause(cause) for cause in causes)
    return tuple(sorted(guarded, key=lambda cause: cause.code))


def find(name: str) -> Cause | None:
    """By code ("FL203") or slug ("stack-overflow"), in any case."""
    return rules.find(catalogue(), name)


def family_title(family: str) -> str:
    """What a family is called: the docstring of its folder."""
    if family not in {module.name for module in pkgutil.iter_modules(__path__)}:
        return f"From {family}"
    title = (importlib.import_module(f"{__name__}.{family}").__doc__ or "").strip().partition("\n")[0]
    return title.removesuffix(".") or family.replace("_", " ")


def by_family() -> dict[str, tuple[Cause, ...]]:
    """The families in the order of their first code, each with its causes."""
    families: dict[str, list[Cause]] = {}
    for cause in catalogue():
        families.setdefault(cause.family, []).append(cause)
    return {family: tuple(causes) for family, causes in families.items()}


def _is_own(cause: Cause) -> bool:
    return type(cause).__module__.startswith(f"{__name__}.")
