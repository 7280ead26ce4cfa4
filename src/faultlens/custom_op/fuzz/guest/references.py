"""The user's function that gives the right results. Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def function_of(named: list[str]) -> Any:
    """`named`: the folder to look in, the module and the function."""
    folder, module, names = named
    if folder not in sys.path:
        sys.path.insert(0, folder)
    function: Any = importlib.import_module(module)
    for name in names.split("."):
        function = getattr(function, name)
    if not callable(function):
        raise TypeError(f"{module}:{names} is not a function")
    return function
