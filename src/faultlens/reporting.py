"""From a crash to its report: the one place where the verdict is added to the facts."""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.crash import Crash
from faultlens.reportfile import Report


def renewed(stored: Report) -> Report:
    """A stored report with the verdict of today's rules."""
    return replace(make_report(stored.crash), reproducer=stored.reproducer)


def make_report(crash: Crash) -> Report:
    """The same for a live capture, a core file and a stored report, whose verdict is thus made anew."""
    if crash.outcome.kind == "ok" and not crash.fault:
        return Report(outcome=crash.outcome, crash=crash)  # nothing to explain: the catalogue need not be loaded
    try:
        from faultlens.diagnose import diagnose

        found = diagnose(crash)
    except Exception as error:  # a rule that fails must not cost the report of the crash
        gap = f"diagnosis: it failed with {type(error).__name__}: {error}"
        gaps = tuple(dict.fromkeys((*crash.gaps, gap)))
        return Report(outcome=crash.outcome, crash=replace(crash, gaps=gaps))
    return Report(outcome=crash.outcome, crash=crash, diagnoses=found.diagnoses, ruled_out=found.ruled_out)
