"""The first of many things, so that a page stays small whatever a report holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Some(Generic[T]):
    """The first of many things, and how many more there are."""

    shown: tuple[T, ...]
    more: int


def some(things: Iterable[T], most: int) -> Some[T]:
    kept = tuple(things)
    return Some(kept[:most], max(len(kept) - most, 0))
