"""What `faultlens op` found out about a custom op: records that are shown, and written as JSON."""

from __future__ import annotations

from typing import Literal, NamedTuple

from faultlens.records.crash import Record
from faultlens.records.diagnosis import Evidence, Fix, Location
from faultlens.records.severity import Severity, is_grave, number_of, worst

SCHEMA_VERSION = 1

# whole: all of the subject was looked at; part: not all; insufficient: too little for a clean bill.
Coverage = Literal["whole", "part", "insufficient"]


class Span(Record, frozen=True):
    """A piece of source code, as compilers count: from 1. The end is the first column behind it."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0  # 0: not known
    end_column: int = 0
    text: str = ""  # the first line of it, whole


class Related(Record, frozen=True):
    """Another place that belongs to the finding: where memory was allocated, where the output is used."""

    says: str
    span: Span


class OpFinding(Record, frozen=True):
    code: str  # stable: "OP101"
    rule: str  # "unchecked-rank"
    severity: Severity
    title: str  # one line about this very op
    span: Span | None = None
    op: str = ""  # as it is registered; else the class of the kernel
    related: tuple[Related, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    called_from: Location | None = None  # the Python line
    reproducer: str = ""  # a few lines of Python that show it
    report: str | None = None  # name of the stored report of a death, for `faultlens show`


class OpReport(Record, frozen=True, omit_defaults=False):
    """What one command found."""

    verb: Literal["check", "test", "sanitize"]
    subject: str  # source or library
    ops: tuple[str, ...] = ()  # that were looked at
    findings: tuple[OpFinding, ...] = ()
    done: tuple[str, ...] = ()  # what was looked at, each in one line: "1,204 inputs tried in 31 s"
    skipped: tuple[str, ...] = ()  # what could not be, and why
    not_held: tuple[str, ...] = ()  # what the sandbox could not have kept the op from doing
    coverage: Coverage = "whole"
    tried: int = 0  # inputs
    seconds: float = 0.0
    schema: int = SCHEMA_VERSION

    @property
    def errors(self) -> int:
        return number_of("error", self.findings)

    @property
    def warnings(self) -> int:
        return number_of("warning", self.findings)

    @property
    def is_grave(self) -> bool:
        return is_grave(worst(self.findings))


class LibraryFindings(NamedTuple):
    """What looking at a library of ops gave, without its sources."""

    findings: tuple[OpFinding, ...]
    done: tuple[str, ...]
    skipped: tuple[str, ...]
    has_ops: bool = True  # it registers ops, or kernels of ops
