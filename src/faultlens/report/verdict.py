"""What all reports say of a verdict: how sure it is, the line it points at, which other causes to mention."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import chain, zip_longest

from faultlens.diagnosis.causes import find
from faultlens.diagnosis.evidence.children import told_of
from faultlens.inspection.frames import user_frame
from faultlens.records.crash import Crash, Frame
from faultlens.records.diagnosis import UNKNOWN, Diagnosis, Location, RuledOut
from faultlens.records.report_file import Report

_CERTAIN = 0.9
# What people hold to be behind an end by these signals, whatever the rest says.
_FOLKLORE = {
    "SIGBUS": ("mapped-file-truncated", "out-of-memory-kill"),
    "SIGILL": ("illegal-instruction",),
    "SIGKILL": ("out-of-memory-kill",),
    "SIGSEGV": ("out-of-memory-kill", "stack-overflow", "op-null-dereference"),
}


def subject(report: Report) -> Crash:
    """The process the report is about."""
    return told_of(report.crash)


def verdict(report: Report) -> Diagnosis | None:
    return report.diagnoses[0] if report.diagnoses else None


def is_unknown(diagnosis: Diagnosis) -> bool:
    return diagnosis.cause == UNKNOWN


def certainty(diagnosis: Diagnosis) -> float:
    """The confidence as a share; a damaged report may say anything."""
    return min(max(diagnosis.confidence, 0.0), 1.0) if math.isfinite(diagnosis.confidence) else 0.0


def sure(diagnosis: Diagnosis) -> str:
    """ "93% sure"; nothing for a verdict that there is none."""
    return "" if is_unknown(diagnosis) else f"{certainty(diagnosis):.0%} sure"


def pointed_at(report: Report) -> Frame | None:
    """The user's line that the verdict names, as a frame; without a verdict the one the stacks lead to."""
    crash = subject(report)
    found = verdict(report)
    if found is None or found.location is None:
        return user_frame(crash)
    return frame_at(found.location, crash)


def called_from(report: Report) -> Frame | None:
    """For an op of a graph: the user's line that called the function it is in."""
    found = verdict(report)
    return frame_at(found.called_from, subject(report)) if found and found.called_from else None


def frame_at(location: Location, crash: Crash) -> Frame:
    """The frame of that line, which knows the columns; made up where the line is on no stack."""
    threads = [thread for thread in (crash.launching_thread, crash.crashed_thread, *crash.threads) if thread]
    for frame in chain.from_iterable(thread.frames for thread in threads):
        if frame.kind == "python" and (frame.file, frame.line) == (location.file, location.line):
            return frame
    return Frame(kind="python", function=location.function, file=location.file, line=location.line)


def tempting(report: Report, most: int) -> tuple[RuledOut, ...]:
    """Ruled-out causes worth a mention: in turn one of each family, those next to the verdict first. Where that is
    certain, only those that people suspect behind any such end."""
    found = verdict(report)
    own = _family(found.cause) if found else None
    end = subject(report).outcome.signal or ""
    families: dict[str | None, list[RuledOut]] = defaultdict(list)
    for other in report.ruled_out:
        family = _family(other.cause)
        if not _is_certain(found) or family in (own, None) or other.cause in _FOLKLORE.get(end, ()):
            families[family].append(other)
    ordered = sorted(families, key=lambda family: family != own)
    rounds = zip_longest(*(families[family] for family in ordered))
    return tuple(other for other in chain.from_iterable(rounds) if other)[:most]


def _is_certain(found: Diagnosis | None) -> bool:
    return found is not None and not is_unknown(found) and found.confidence >= _CERTAIN


def _family(slug: str) -> str | None:
    cause = find(slug)
    return cause.family if cause else None
