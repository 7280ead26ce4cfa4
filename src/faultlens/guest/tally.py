"""How often the program has traced functions and made variables, and at which lines: counted always, read seldom."""

from __future__ import annotations

from typing import Any, Optional

from .lines import Place

MAX_PLACES = 1000

Key = tuple[str, Optional[Place]]


class Tally:
    def __init__(self) -> None:
        self.traces: dict[Key, int] = {}
        self.variables: dict[Key, int] = {}

    def traced(self, name: str, defined: Place | None) -> None:
        _count(self.traces, (defined[2] if defined else name, defined))

    def made_variable(self, place: Place | None) -> None:
        _count(self.variables, ("", place))


def most(counts: dict[Key, int], number: int) -> list[list[Any]]:
    """Name, file, line and how often, the most frequent first."""
    often = sorted(counts.items(), key=lambda item: -item[1])[:number]
    return [[name, place[0] if place else None, place[1] if place else None, count] for (name, place), count in often]


def _count(counts: dict[Key, int], key: Key) -> None:
    if key in counts or len(counts) < MAX_PLACES:
        counts[key] = counts.get(key, 0) + 1
