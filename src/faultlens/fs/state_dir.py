"""Where faultlens keeps what outlives a program."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder of all reports; it need not exist yet."""
    if chosen := os.environ.get("FAULTLENS_HOME"):
        return Path(chosen).expanduser()
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a relative path is invalid and to be ignored.
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "faultlens"
