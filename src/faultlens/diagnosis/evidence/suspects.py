"""What in the user's sources may have damaged memory, whoever noticed it: bounds and lifetimes that nobody checks."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.records.diagnosis import Evidence

_SHOWN = 3


class Suspect(NamedTuple):
    use: Use
    why: str  # "nothing checks the bounds of as_strided"

    @property
    def evidence(self) -> Evidence:
        return Evidence(fact=f"a suspect: {self.use.place}, where {self.why}", source="source")


def suspects(case: Case) -> tuple[Suspect, ...]:
    """Those on the line that was running first, one for each line."""
    sources = sources_of(case.crash)
    found = [Suspect(use, f"nothing checks the bounds of {use.name}") for use in sources.unchecked]
    if pair := used_after_release(case):
        view, release = pair
        found.append(
            Suspect(release, f"{release.name} gives memory back that {view.name} ({view.place}) may still show")
        )
    by_line: dict[str, Suspect] = {}
    for each in found:
        by_line.setdefault(each.use.place, each)
    return tuple(sorted(by_line.values(), key=lambda each: not is_running(case, each.use))[:_SHOWN])


def used_after_release(case: Case) -> tuple[Use, Use] | None:
    """A view of memory that it does not own, and the place where memory is given back by hand."""
    sources = sources_of(case.crash)
    view, release = sources.borrowed_view or sources.addressed_view, sources.release
    return (view, release) if view and release else None


def is_running(case: Case, use: Use) -> bool:
    """It stands on the line that was being executed."""
    return case.running is not None and (case.running.file, case.running.line) == (use.file, use.line)
