"""Which backend Keras 3 would use, and who says so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from faultlens.system.procfs import read_text

VARIABLE = "KERAS_BACKEND"


class Backend(NamedTuple):
    name: str
    file: Path | None = None  # keras.json; None where the variable says it

    @property
    def source(self) -> str:
        return str(self.file) if self.file else "environment"


def chosen_backend(variables: Mapping[str, str]) -> Backend | None:
    """As Keras decides: the variable, else its file. None where neither names one."""
    if name := variables.get(VARIABLE):
        return Backend(name)
    file = _folder(variables) / "keras.json"
    try:
        settings = json.loads(read_text(file) or "{}")
    except (ValueError, RecursionError):
        return None  # Keras goes on without it
    name = settings.get("backend") if isinstance(settings, dict) else None
    return Backend(name, file) if isinstance(name, str) else None


def _folder(variables: Mapping[str, str]) -> Path:
    if (folder := variables.get("KERAS_HOME")) is not None:
        return Path(folder)
    home = variables.get("HOME") or os.path.expanduser("~")
    return Path(home if os.access(home, os.W_OK) else "/tmp") / ".keras"
