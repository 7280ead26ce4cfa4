"""Carries out what the user agreed to, and says how to take it back."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence

from faultlens.records.finding import Checkup, Finding, Repair

Command = Sequence[str]


def repairable(checkup: Checkup) -> tuple[Finding, ...]:
    """Findings that faultlens can repair, each repair once."""
    found: dict[Repair, Finding] = {}
    for finding in checkup.findings:
        if finding.repair is not None:
            found.setdefault(finding.repair, finding)
    return tuple(found.values())


def in_shell(commands: Sequence[Command]) -> str:
    """One line that a user can paste."""
    return " && ".join(shlex.join(command) for command in commands)


def apply(repair: Repair, variables: Mapping[str, str]) -> int | None:
    """Runs the commands until one fails. None, or the exit status of the one that failed.

    Its output is the user's to see. Variables that break the environment must not break the cure."""
    clean = {name: value for name, value in variables.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    for command in repair.commands:
        try:
            status = subprocess.run(list(command), env=clean, stdin=subprocess.DEVNULL).returncode
        except OSError:
            return 127
        if status:
            return status
    return None
