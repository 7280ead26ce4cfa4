"""Which Python the user means: one answer for every verb that starts it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from faultlens.errors import FaultlensError

# Written by pipx and uv into an environment that they made for one tool alone.
TOOLS_ENVIRONMENT = ("pipx_metadata.json", "uv-receipt.toml")


class Choice(NamedTuple):
    executable: str
    why: str

    def in_words(self) -> str:
        return f"Python: {self.executable} ({self.why})"


def which_python(wanted: str | None, variables: Mapping[str, str]) -> Choice:
    """The one that was named (a path, a name, or a virtual environment); else the active environment's; else that of
    the environment faultlens lives in, if it is one to run programs in; else the first on PATH."""
    if wanted is not None:
        return Choice(named_python(wanted, variables), "--python")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variable == "CONDA_PREFIX" and variables.get("CONDA_DEFAULT_ENV") == "base":
            continue  # conda activates it in every shell: nobody chose it. It comes first on PATH all the same
        root = variables.get(variable)
        if root and (python := Path(root, "bin", "python")).exists():
            return Choice(str(python), variable)
    if sys.executable and (why := _lives_in()):
        return Choice(sys.executable, why)
    search = variables.get("PATH")
    found = shutil.which("python", path=search) or shutil.which("python3", path=search)
    return Choice(found, "first on PATH") if found else Choice(sys.executable, "there is none on PATH")


def named_python(wanted: str, variables: Mapping[str, str]) -> str:
    path = Path(wanted).expanduser()
    if path.is_dir():
        inside = path / "bin" / "python"
        if not inside.exists():
            raise FaultlensError(f"{wanted} has no bin/python.", "Name a Python or a virtual environment.")
        return str(inside.absolute())
    if path.is_file():  # whether it may be run, running it tells: `access()` forgets the capabilities of the process
        return str(path.absolute())
    found = shutil.which(str(path), path=variables.get("PATH"))
    if found is None:
        raise FaultlensError(f"There is no program {wanted}.", "Name a Python or a virtual environment.")
    return str(Path(found).absolute())


def _lives_in() -> str | None:
    """Why programs are run in the environment of faultlens; None where they are not."""
    folders = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    if any(os.path.isdir(Path(folder, "tensorflow")) for folder in folders):
        return "faultlens is installed there, beside TensorFlow"
    is_virtual = sys.prefix != sys.base_prefix
    if is_virtual and not any(Path(sys.prefix, name).exists() for name in TOOLS_ENVIRONMENT):
        return "the virtual environment that faultlens is installed in"
    return None
