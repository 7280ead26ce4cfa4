"""What is said where a library is missing that is no part of a plain installation."""

from __future__ import annotations

EXTRA = "pip install 'faultlens[data]'"


def not_there(error: ImportError, name: str = "") -> str:
    """ "h5py is not installed"; `name`: as people know it."""
    name = name or error.name or "a module"
    if isinstance(error, ModuleNotFoundError):
        return f"{name} is not installed"
    return f"{name} cannot be imported ({error})"
