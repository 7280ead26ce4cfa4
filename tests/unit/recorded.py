"""Recorded crashes for the tests of reports: small JSON files that a person can read."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

from faultlens import reportfile
from faultlens.cli import output
from faultlens.crash import Crash, Outcome
from faultlens.reportfile import Report

FOLDER = Path(__file__).parent / "crashes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
THERE = "/home/ada/mnist"  # where the recorded programs ran


def report(name: str, directory: Path | None = None) -> Report:
    """The recorded report; `directory` holds the sources of the program, as they were when it ran."""
    data = (FOLDER / f"{name}.json").read_text()
    return reportfile.from_json(data.replace(THERE, str(directory or THERE)).encode())


def sources(directory: Path) -> Path:
    """The programs' sources, older than the crashes."""
    for source in (FOLDER / "source").iterdir():
        shutil.copy(source, directory)
        os.utime(directory / source.name, (0, 0))
    return directory


def plain(report: Report, *, verbose: bool = False, stored: Path | None = None) -> str:
    """The report as it is written into a pipe."""
    stream = io.StringIO()
    output.render(report, stream, verbose=verbose, stored=stored)
    return stream.getvalue()


def ended(**facts: object) -> Crash:
    """A crash of which only these facts are known."""
    outcome = facts.pop("outcome", Outcome(kind="signal", signal="SIGSEGV"))
    return Crash(outcome=outcome, method="agent", **facts)  # type: ignore[arg-type]
