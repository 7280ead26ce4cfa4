"""What was found before any crash: records that the doctor and the other checks share."""

from __future__ import annotations

from typing import Literal

from faultlens.records.crash import Record
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.severity import Grave

Mark = Literal["ok", "warning", "error", "skipped"]
SCHEMA_VERSION = 1
NOT_GIVEN = "none given"  # how the summary of a check begins that is made on demand


class Repair(Record, frozen=True):
    """What faultlens can do itself, if the user agrees: commands in order, and those that take them back."""

    commands: tuple[tuple[str, ...], ...]
    undo: tuple[tuple[str, ...], ...]


class Finding(Record, frozen=True):
    check: str  # name of the check
    severity: Grave  # error: it will fail or crash; warning: it will under named conditions
    title: str  # one line about this very environment
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    causes: tuple[str, ...] = ()  # slugs of the crashes that it leads to
    repair: Repair | None = None


class Examination(Record, frozen=True):
    """What one check saw."""

    check: str
    mark: Mark
    summary: str  # one line: what was seen, or why it was skipped
    details: tuple[str, ...] = ()  # shown on demand
    findings: tuple[Finding, ...] = ()


class Checkup(Record, frozen=True, omit_defaults=False):
    """All of them, about one environment."""

    python: str
    examinations: tuple[Examination, ...]
    version: str | None = None  # of Python
    tensorflow: str | None = None
    cpu: str | None = None
    deep: bool = False
    schema: int = SCHEMA_VERSION

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for examination in self.examinations for finding in examination.findings)
