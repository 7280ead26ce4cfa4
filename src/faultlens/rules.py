"""What causes, checks of the doctor and rules about ops have in common, and the one way to find them.

A leaf, because the three kinds belong to an engine and to two features, which do not know each other. A rule is one
class in one module of the package of its kind: adding one means adding one file. Other distributions add theirs through
entry points (docs/plugins.md)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeVar

from faultlens.plugins import complain, name_of, plugged

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Rule:
    """One thing that can be wrong. The docstring of a subclass is its page."""

    needed: ClassVar[tuple[str, ...]] = ("slug", "code", "headline")  # what a class must say of itself

    slug: ClassVar[str]  # "stack-overflow"
    code: ClassVar[str]  # stable: "FL206"; empty for a kind of rules that has none
    headline: ClassVar[str]  # one line for lists

    @property
    def explanation(self) -> str:
        """The page."""
        return inspect.cleandoc(type(self).__doc__ or "")


R = TypeVar("R", bound=Rule)


def collect(package: str, base: type[R], group: str) -> list[R]:
    """One instance of every rule in the package, and of those that other distributions add."""
    found = [rule() for rule in _classes_in(package, base)]
    for number, rule in enumerate(found):
        if flaw := _flaw(rule, found[:number]):
            raise TypeError(f"{name_of(rule)}: {flaw}")
    for rule in plugged(group, base):
        if flaw := _flaw(rule, found):
            complain(name_of(rule), flaw)
        else:
            found.append(rule)
    return found


def find(rules: Iterable[R], name: str) -> R | None:
    """By code or slug, in any case."""
    wanted = name.strip().lower()
    return next((rule for rule in rules if wanted and wanted in (rule.code.lower(), rule.slug)), None)


def _classes_in(package: str, base: type[R]) -> Iterator[type[R]]:
    """What has no slug of its own is what several rules share."""
    for found in pkgutil.walk_packages(sys.modules[package].__path__, f"{package}."):
        module = importlib.import_module(found.name)
        for each in list(vars(module).values()):
            own = isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__
            if own and "slug" in vars(each) and not inspect.isabstract(each):
                yield each


def _flaw(rule: Rule, others: Sequence[Rule]) -> str | None:
    """Why it cannot stand beside the others."""
    for name in type(rule).needed:
        if not (isinstance(value := getattr(rule, name, None), str) and value):
            return f"it has no {name}"
    if not _SLUG.fullmatch(rule.slug):
        return f"its slug {rule.slug!r} is not in lower case with hyphens"
    for other in others:
        if rule.slug == other.slug or (rule.code and rule.code.lower() == other.code.lower()):
            same = f"slug {rule.slug}" if rule.slug == other.slug else f"code {rule.code}"
            return f"the {same} is that of {name_of(other)}"
    return None
