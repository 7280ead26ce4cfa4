"""What did a model die of in a measured run? The same run once more, under `faultlens run`, and its verdict.

Not the first time: what is loaded to look at a death would be measured, too."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from faultlens.errors import FaultlensError
from faultlens.forecasting.runs import Ran, Runs
from faultlens.forecasting.subject import Subject
from faultlens.records import report_file
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import UNKNOWN
from faultlens.records.report_file import Report
from faultlens.report.headline import place
from faultlens.report.make import make_report
from faultlens.report.verdict import pointed_at, verdict
from faultlens.store import folder
from faultlens.supervise.dotenv import secrets_beside
from faultlens.text.safe import one_line

ENDING_S = 60.0  # for the look at a death, and the report


class CrashedError(FaultlensError):
    """The model died, and its report says of what."""

    def __init__(self, what: str, ran: Ran, report: Report, stored: Path | None) -> None:
        show = f"`faultlens show {folder.identity(stored)}` tells everything." if stored else ""
        super().__init__(f"{_capitalised(what)} {_in_words(ran, report)}.", f"{_fix(report)} {show}".strip())
        self.what = what
        self.report = report
        self.stored = stored


class Again(NamedTuple):
    """What to run to see it die."""

    request: dict[str, Any]
    memory: int
    seconds: float
    subject: Subject
    python: str


def error_of(ran: Ran, what: str, again: Again) -> FaultlensError:
    """Of a run that died; `what` it was."""
    second, crash = _watched(again)
    if crash is None:
        seen = "it could not be looked at" if second.signal else "it did not"
        return FaultlensError(
            f"{_capitalised(what)} died by {ran.signal}; once more, under `faultlens run`, {seen}.",
            "Run the training itself with `faultlens run`.",
        )
    report = make_report(crash, secrets=secrets_beside(crash.program.directory))
    try:
        stored: Path | None = folder.save(report)
    except FaultlensError:  # it cannot be kept; what it says still counts
        stored = None
    return CrashedError(what, ran, report, stored)


def _watched(again: Again) -> tuple[Ran, Crash | None]:
    with tempfile.TemporaryDirectory(prefix="faultlens-forecast-") as home:
        file = Path(home) / "report.json"
        under = [sys.executable, "-m", "faultlens", "run", "--quiet", "--no-save", "--json", str(file), "--"]
        with Runs(again.python, again.subject.path, under=under) as runs:
            runs.wait_until_ready()
            second = runs.run(again.request, again.memory, again.seconds)
            runs.close(ENDING_S)
        below = report_file.read(file).crash.children if file.exists() else ()
    crash = next((child for child in below if child.fault), None)
    if crash is not None:
        crash = replace(crash, program=replace(crash.program, command=(again.subject.name,)))  # not our own server
    return second, crash


def _in_words(ran: Ran, report: Report) -> str:
    """ "died by SIGSEGV at train.py:12 (call): a null pointer was read (FL101)"."""
    frame, found = pointed_at(report), verdict(report)
    at = f" at {place(frame, report.crash)}" if frame else ""
    if found is None or found.cause == UNKNOWN:
        return f"died by {ran.signal}{at}"
    op = f" in op {found.op}" if found.op and found.op not in found.title else ""
    return f"died by {ran.signal}{op}{at}: {one_line(found.title, 300)} ({found.code} {found.cause})"


def _fix(report: Report) -> str:
    found = verdict(report)
    return f"To mend it: {one_line(found.fixes[0].title, 300).rstrip('.')}." if found and found.fixes else ""


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
