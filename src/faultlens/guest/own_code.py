"""Whose code it is: the user's own, or that of a library."""

from __future__ import annotations

import os
import re

GENERATED = "__autograph_generated_file"  # AutoGraph's rewritten copy of a function

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INSTALLED = re.compile(r"(?:^|/)(?:(?:site|dist)-packages|lib(?:32|64)?/python\d+(?:\.\d+)?t?|python\d+\.zip)/")
_CYTHON = (".pyx", ".pxi", ".pxd")
_NOTEBOOK_CELL = "<ipython-input"


def is_own(file: str) -> bool:
    """Not an installed package, not Python's own, not made up by a library, not ours."""
    if file.startswith("<"):
        return file.startswith(_NOTEBOOK_CELL)
    return not (_INSTALLED.search(file) or file.startswith(_HERE) or file.endswith(_CYTHON) or GENERATED in file)
