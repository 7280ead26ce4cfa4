"""Values among the inputs of an op that lead out of its data: what makes leaving them likely, whatever they are called.

What is odd about an argument by its name and meaning: oddities.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultlens.diagnosis.evidence.arguments import Argument, Given
from faultlens.diagnosis.evidence.kernels import tensor_in_words


class Misfit(NamedTuple):
    words: str  # "row_splits (int64 [3]) goes up to 9, and values (int32 [0]) is empty"
    outside: bool  # it must lead out of the data; -1 often means "as it comes"


def misfit(given: Given | None) -> Misfit | None:
    found = list(_misfits(given)) if given else []
    return next((each for each in found if each.outside), found[0] if found else None)


def _misfits(given: Given) -> Iterator[Misfit]:
    empty = next((each for each in given.arguments if each.size == 0), None)
    for argument in given.arguments:
        values = argument.integers
        if not values:
            continue
        largest, smallest, name = max(values), min(values), _named(argument)
        others = [each.size or 0 for each in given.arguments if each is not argument]
        if empty is not None and largest > 0 and argument.rank:
            yield Misfit(f"{name} goes up to {largest}, and {_named(empty)} is empty", True)
        if smallest < 0:
            yield Misfit(f"{name} contains {smallest}", smallest < -1)
        # As many as there are elements: a split may be that, an index may not.
        if argument.rank and others and largest > max(others):
            yield Misfit(f"{name} goes up to {largest}, which no other input has elements for", True)


def _named(argument: Argument) -> str:
    return f"{argument.name} ({tensor_in_words(argument.tensor)})"
