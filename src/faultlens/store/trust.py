"""The gate before anything that a report names is run: a Python, a program, a library, an op.

A report is your own when faultlens wrote it here while the program died, and nobody else can have written or changed it
since. Any other is shown, and runs nothing unless you say so; then it runs inside the sandbox only."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import NamedTuple

from faultlens.errors import FaultlensError
from faultlens.fs.state_dir import home
from faultlens.records.report_file import Report
from faultlens.report.verdict import subject
from faultlens.store import folder

ROOT = 0
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Doubt(NamedTuple):
    """Why a report may be the word of somebody else, as a sentence, and how to put that right."""

    problem: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.problem[0].upper()}{self.problem[1:]} {self.advice}".rstrip()


def admit(path: Path, report: Report, trusted: bool) -> bool:
    """Whether it is your own. One that is not raises FaultlensError, unless you trust whoever wrote it: False then
    means that all it names belongs into the sandbox."""
    doubt = doubt_about(path, report)
    if doubt is None:
        return True
    if not trusted:
        raise FaultlensError(
            f"Nothing was run: {doubt.problem}",
            f"{doubt.advice} If you trust whoever wrote it, say --trust: it is then run inside a sandbox.".strip(),
        )
    return False


def doubt_about(path: Path, report: Report) -> Doubt | None:
    if not folder.is_kept(path):
        return Doubt("this report was given as a file, which anybody may have written.")
    if "core" in (report.crash.method, subject(report).method):
        return Doubt("this report was made from a core file, which may have come from anywhere.")
    return doubt_about_place(path)


def doubt_about_place(path: Path) -> Doubt | None:
    """Whether anybody but you and root can write what stands there, or put something else in its place."""
    top, crash = home().resolve(), path.parent.resolve()
    for place in (*reversed(top.parents), top, crash, crash / path.name):
        try:
            state = place.lstat()
        except OSError as error:
            return Doubt(f"{place} cannot be looked at: {error.strerror}.")
        if state.st_uid not in (os.geteuid(), ROOT):
            return Doubt(f"{place} belongs to another user (id {state.st_uid}), who may have written this report.")
        # In a folder with the sticky bit others can add names, and not touch those that are there.
        sticky = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
        if state.st_mode & OTHERS_MAY_WRITE and not sticky:
            remedy = "chmod 700" if place == top else "chmod go-w"
            return Doubt(
                f"other users can write to {place}, and may have written this report.",
                f"Say `{remedy} {shlex.quote(str(place))}`, and look at what is there.",
            )
    return None
