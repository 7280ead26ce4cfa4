"""What stands in the variables of the dynamic loader, which splits each of them in its own way."""

from __future__ import annotations

import re


def search_entries(value: str) -> tuple[str, ...]:
    """The folders of an LD_LIBRARY_PATH, blanks and all; an empty one is the current folder."""
    return tuple(re.split("[:;]", value)) if value else ()


def preload_entries(value: str) -> tuple[str, ...]:
    """The libraries of an LD_PRELOAD."""
    return tuple(filter(None, re.split("[ :]", value)))
