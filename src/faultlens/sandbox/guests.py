"""How code of ours is started in the Python of the user's programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from faultlens.sandbox.guest import guard

# What a process of ours must not take for its own: under `faultlens run`, and where it is to leave things.
NEVER_INHERITED = ("FAULTLENS_AGENT", "FAULTLENS_ONLY_THIS")


def guest_command(python: str, module: str | Path, *arguments: str) -> list[str]:
    """`module`: a file in a folder `guest/`, whose `main()` is called."""
    return [python, "-B", os.path.join(guard.FOLDER, "start.py"), str(module), *arguments]


def inherited(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in NEVER_INHERITED}
