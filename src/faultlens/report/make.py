"""From a crash to its report: the one place where the verdict is added to the facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from faultlens.records.crash import Crash, Outcome
from faultlens.records.diagnosis import Diagnosis, Evidence, Reproducer
from faultlens.records.finding import Finding
from faultlens.records.report_file import Report
from faultlens.report.scrub import scrubbed, without_secrets

MOST_OF_CHANGING = 0.6  # confidence in a verdict that another run of the program contradicts


def renewed(stored: Report) -> Report:
    """A stored report with the verdict of today's rules."""
    return with_reproducer(make_report(stored.crash, stored.findings), stored.reproducer)


def with_reproducer(report: Report, reproducer: Reproducer | None) -> Report:
    """The script that lies in its folder stays as it is; the copy in the report has no secrets."""
    if reproducer and report.crash.program.redacted:
        reproducer = without_secrets(reproducer)
    return replace(report, reproducer=reproducer)


def make_report(crash: Crash, findings: tuple[Finding, ...] = (), secrets: Iterable[str] = ()) -> Report:
    """The same for a live capture, a core file and a stored report, whose verdict is thus made anew.

    What must not be kept or shown is taken out first: the `secrets`, and what looks like one (report/scrub.py)."""
    crash = scrubbed(crash, secrets)
    if crash.program.redacted:
        findings = tuple(map(without_secrets, findings))
    if crash.outcome.kind == "ok" and not crash.fault and not (crash.hunt and crash.hunt.block):
        return Report(outcome=crash.outcome, crash=crash)  # nothing to explain: the catalogue need not be loaded
    try:
        from faultlens.diagnosis.rank import diagnose

        found = diagnose(crash, findings)
    except Exception as error:  # a rule that fails must not cost the report of the crash
        gap = f"diagnosis: it failed with {type(error).__name__}: {error}"
        gaps = tuple(dict.fromkeys((*crash.gaps, gap)))
        return Report(outcome=crash.outcome, crash=replace(crash, gaps=gaps), findings=findings)
    return Report(
        outcome=_judged(crash, found.diagnoses),
        crash=crash,
        diagnoses=found.diagnoses,
        ruled_out=found.ruled_out,
        findings=findings,
    )


def reconsidered(report: Report, earlier: Sequence[str]) -> Report:
    """Less sure, where earlier runs of the same program were judged otherwise: `earlier` has their causes."""
    others = [cause for cause in earlier if report.diagnoses and cause != report.diagnoses[0].cause]
    if not others:
        return report
    first, *rest = report.diagnoses
    fact = f"the same program was judged otherwise before: {', '.join(others)}"
    unsure = replace(
        first,
        confidence=min(first.confidence, MOST_OF_CHANGING),
        evidence=(*first.evidence, Evidence(fact=fact, source="earlier reports")),
    )
    return replace(report, diagnoses=(unsure, *rest))


def _judged(crash: Crash, found: Sequence[Diagnosis]) -> Outcome:
    """The record says that its time was up; the report, whether it hung."""
    from faultlens.diagnosis.evidence.standing import AT_WORK, standing

    hangs = bool(found) and found[0].cause == "hang"
    if crash.outcome.kind == "timeout" and (hangs or standing(crash).state not in AT_WORK):
        return replace(crash.outcome, kind="hang")
    return crash.outcome
