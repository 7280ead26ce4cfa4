"""What the program ran in, as far as it can be had again: its Python, its variables, its limits."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from faultlens.agent import launch
from faultlens.errors import FaultlensError
from faultlens.records.crash import Crash
from faultlens.repro.task import Options
from faultlens.sandbox.trial.trial import Surroundings
from faultlens.system.loader_variables import without_ours
from faultlens.target_env.which_python import named_python
from faultlens.text.redaction import HIDDEN
from faultlens.text.safe import one_line

# What decides how native code behaves; other variables are taken from where faultlens runs.
_SETTINGS = ("TF_", "TF2_", "XLA_", "LD_", "PYTHON", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "GLIBC_TUNABLES")
_NOT_SETTINGS = ("PYTHONSTARTUP", "PYTHONDONTWRITEBYTECODE", "TF_CLI_CONFIG_FILE")
_LIMITS = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_NPROC")

Limits = tuple[tuple[str, int], ...]  # name and value: ("RLIMIT_DATA", bytes)


def surroundings_of(crash: Crash, options: Options) -> Surroundings:
    python = named_python(options.python, os.environ) if options.python else _program_python(crash)
    if python is None:
        raise FaultlensError("The report does not tell which Python ran the program.", "Name it with --python.")
    if not Path(python).is_file():
        raise FaultlensError(
            f"The Python of the program, {one_line(python, 200)}, is not here.", "Name one with --python."
        )
    if problem := launch.agent_problem(python):
        raise FaultlensError(f"No trial could be watched: {problem.reason}.", "Name another Python with --python.")
    return Surroundings(python, _settings(crash) if options.own else {}, options.of_child)


def _program_python(crash: Crash) -> str | None:
    known = crash.program.python
    if known is None:
        return None
    virtual = Path(known.prefix) / "bin" / "python" if known.prefix else None
    return str(virtual) if virtual and virtual.is_file() else known.executable


def _settings(crash: Crash) -> dict[str, str]:
    """The program's variables that decide how native code behaves."""
    found = {}
    for name, value in crash.program.environment.items():
        if name.startswith(_SETTINGS) and name not in _NOT_SETTINGS and value != HIDDEN:
            found[name] = without_ours(value) if name == "LD_PRELOAD" else value
    return {name: value for name, value in found.items() if value}


def limits_of(crash: Crash) -> Limits:
    """Limits that the program had and we have not."""
    found = []
    for name in _LIMITS:
        limit = crash.limits.get(name)
        ours = resource.getrlimit(getattr(resource, name))[0]
        if limit and limit.soft is not None and (ours == resource.RLIM_INFINITY or limit.soft < ours):
            found.append((name, limit.soft))
    return tuple(found)
