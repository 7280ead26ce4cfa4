"""Recorded crashes for the tests of reports: small JSON files that a person can read."""

from __future__ import annotations

import io
from pathlib import Path

from msgspec.structs import replace

import places
from faultlens.cli import output
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.inspection.frames import user_frame
from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome
from faultlens.records.diagnosis import Diagnosis, Evidence, Fix, Location, RuledOut
from faultlens.records.report_file import Report

FOLDER = places.TESTS / "unit" / "report" / "crashes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
THERE = "/home/ada/mnist"  # where the recorded programs ran


def report(name: str, *, with_sources: bool = False) -> Report:
    """The recorded report; on request with the sources of the program, which the files hold apart."""
    found = report_file.from_json((FOLDER / f"{name}.json").read_bytes())
    if not with_sources:
        return found
    sources = {f"{THERE}/{path.name}": path.read_text() for path in (FOLDER / "source").iterdir()}
    return replace(found, crash=replace(found.crash, sources=sources))


def diagnosed(name: str) -> Report:
    """The recorded report with its sources and a made-up verdict, so that it does not depend on any cause."""
    found = report(name, with_sources=True)
    frame = user_frame(subject_of(found.crash))
    assert frame and frame.file and frame.line
    first = Diagnosis(
        cause="made-up-cause",
        code="FL999",
        confidence=0.93,
        title="FastGather reads table 3, which was never loaded",
        location=Location(file=frame.file, line=frame.line, function=frame.function),
        op="FastGather",
        evidence=(
            Evidence(fact="rdi, through which it reads, is 0", source="registers"),
            Evidence(
                fact="died in FastGatherOp<…>::Compute of fast_gather.so, which is not TensorFlow's",
                source="native stack",
            ),
        ),
        fixes=(
            Fix(
                title="load every table before the first call",
                detail="call `fast_gather.load(path)` for each of the tables that the vocabulary names",
                grade="safe",
            ),
            Fix(title="return an error from the op when a table is missing"),
        ),
    )
    rival = Diagnosis(
        cause="another-cause", code="FL998", confidence=0.41, title="the op library is of another TensorFlow"
    )
    not_so = RuledOut(cause="stack-overflow", because="the instruction is an ordinary mov")
    return replace(found, diagnoses=(first, rival), ruled_out=(not_so,))


def plain(report: Report, *, verbose: bool = False, stored: Path | None = None) -> str:
    """The report as it is written into a pipe."""
    stream = io.StringIO()
    output.render(report, stream, verbose=verbose, stored=stored)
    return stream.getvalue()


def ended(**facts: object) -> Crash:
    """A crash of which only these facts are known."""
    outcome = facts.pop("outcome", Outcome(kind="signal", signal="SIGSEGV"))
    return Crash(outcome=outcome, method="agent", **facts)  # type: ignore[arg-type]
