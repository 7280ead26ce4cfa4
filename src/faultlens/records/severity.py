"""How bad a finding is: one scale for the doctor, for ops, for training data and for pipelines.

Causes of a crash are not on it: they explain what happened already, and are ranked by how sure they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

# error: it crashes, cannot be used, or gives wrong results; warning: it does under named conditions, or is not like the
# rest; note: worth knowing.
Severity = Literal["error", "warning", "note"]
Grave = Literal["error", "warning"]  # of those who have no notes
WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "note")


class Graded(Protocol):
    """A finding."""

    @property
    def severity(self) -> Severity: ...


def rank(severity: Severity) -> int:
    """0 is the worst."""
    return WORST_FIRST.index(severity)


def worst(findings: Iterable[Graded]) -> Severity | None:
    return min((finding.severity for finding in findings), key=rank, default=None)


def is_grave(severity: Severity | None) -> bool:
    """Whether something must be done about it."""
    return severity is not None and severity != "note"


def number_of(severity: Severity, findings: Iterable[Graded]) -> int:
    return sum(finding.severity == severity for finding in findings)
