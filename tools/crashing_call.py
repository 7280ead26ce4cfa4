"""A call that dies on bad arguments."""

from __future__ import annotations

from typing import NamedTuple


class Call(NamedTuple):
    op: str
    code: str
    issue: int | None = None
