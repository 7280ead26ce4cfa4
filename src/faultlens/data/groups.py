"""Which files belong together: those of one folder whose names differ in their numbers alone."""

from __future__ import annotations

import posixpath
import re

_NUMBERS = re.compile(r"\d+")


def group_of(path: str) -> str:
    folder, name = posixpath.split(path)
    return posixpath.join(folder, _NUMBERS.sub("#", name))
