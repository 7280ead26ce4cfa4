"""Sentences with `code` in them: how our texts mark what is to be typed or read letter by letter."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.text.safe import one_line

_CODE = re.compile(r"`([^`]+)`")


class Run(NamedTuple):
    text: str
    code: bool


def runs(text: str, limit: int) -> list[Run]:
    """The text, made safe, in runs of words and of code."""
    parts = _CODE.split(one_line(text, limit))  # every second part is code
    return [Run(part, bool(index % 2)) for index, part in enumerate(parts) if part]
