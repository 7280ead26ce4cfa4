"""What TensorFlow's ops take: the names of their inputs, and the ranks that its shape functions accept."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """An input of an op as it is defined."""

    name: str
    length: str | None = None  # it is a list, and this attribute tells how long
    ranks: tuple[int, ...] = ()  # that are accepted; nothing where any is, or where it is not known


def parameters(op: str) -> tuple[Parameter, ...]:
    """Nothing for ops that are not TensorFlow's."""
    entry = _table().get(op, {})
    ranks = entry.get("ranks", {})
    named = (name.partition("*") for name in entry.get("inputs", ()))
    return tuple(Parameter(name, length or None, tuple(ranks.get(name, ()))) for name, _, length in named)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(resources.files(__package__).joinpath("op_arguments.json").read_text())
    return table
