"""What stands in the variables of the dynamic loader, which splits each of them in its own way."""

from __future__ import annotations

import re

_OURS = re.compile(r"(?:^|/)libfaultlens_\w+\.so$")


def search_entries(value: str) -> tuple[str, ...]:
    """The folders of an LD_LIBRARY_PATH, blanks and all; an empty one is the current folder."""
    return tuple(re.split("[:;]", value)) if value else ()


def preload_entries(value: str) -> tuple[str, ...]:
    """The libraries of an LD_PRELOAD."""
    return tuple(filter(None, re.split("[ :]", value)))


def is_ours(library: str) -> bool:
    """Whether faultlens brought it along, this installation or another: it says nothing about the program."""
    return bool(_OURS.search(library))


def without_ours(preloaded: str) -> str:
    """An LD_PRELOAD as the program would have had it."""
    return ":".join(path for path in preload_entries(preloaded) if not is_ours(path))
