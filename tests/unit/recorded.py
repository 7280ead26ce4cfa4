"""Recorded crashes for the tests of reports: small JSON files that a person can read."""

from __future__ import annotations

import io
from pathlib import Path

from msgspec.structs import replace

from faultlens import reportfile
from faultlens.cli import output
from faultlens.crash import Crash, Outcome
from faultlens.reportfile import Report

FOLDER = Path(__file__).parent / "crashes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
THERE = "/home/ada/mnist"  # where the recorded programs ran


def report(name: str, *, with_sources: bool = False) -> Report:
    """The recorded report; on request with the sources of the program, which the files hold apart."""
    found = reportfile.from_json((FOLDER / f"{name}.json").read_bytes())
    if not with_sources:
        return found
    sources = {f"{THERE}/{path.name}": path.read_text() for path in (FOLDER / "source").iterdir()}
    return replace(found, crash=replace(found.crash, sources=sources))


def plain(report: Report, *, verbose: bool = False, stored: Path | None = None) -> str:
    """The report as it is written into a pipe."""
    stream = io.StringIO()
    output.render(report, stream, verbose=verbose, stored=stored)
    return stream.getvalue()


def ended(**facts: object) -> Crash:
    """A crash of which only these facts are known."""
    outcome = facts.pop("outcome", Outcome(kind="signal", signal="SIGSEGV"))
    return Crash(outcome=outcome, method="agent", **facts)  # type: ignore[arg-type]
