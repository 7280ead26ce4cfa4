"""What the facts of a crash mean: ranked causes with their proof, causes ruled out, and fixes."""

from __future__ import annotations

from typing import Literal

import msgspec

from faultlens.records.crash import Record

UNKNOWN = "unknown"  # the cause where the facts do not decide


class Location(Record, frozen=True):
    """A line of the user's own code."""

    file: str
    line: int
    function: str


class Evidence(Record, frozen=True):
    fact: str
    source: str  # where the fact was read: "siginfo", "/proc/PID/maps", "cgroup counter"


class Fix(Record, frozen=True):
    title: str
    detail: str = ""
    grade: Literal["safe", "needs thought"] = "needs thought"
    command: str = ""  # what to type, where a command does it


class Diagnosis(Record, frozen=True):
    cause: str  # slug of the catalogue
    code: str  # stable: "FL101"
    confidence: float
    title: str
    location: Location | None = None  # for an op of a graph: the line that wrote it
    called_from: Location | None = None  # and then the line that called the function it is in
    op: str | None = None
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()


class RuledOut(Record, frozen=True):
    cause: str
    because: str


class Reproducer(Record, frozen=True):
    """A small program that was seen to die as the reported one did."""

    kind: Literal["op", "script"]  # a call of the op at fault, or the user's script reduced
    script: str
    files: dict[str, bytes] = msgspec.field(default_factory=dict)  # beside the script: name -> .npy contents
    runs: int = 0
    same: int = 0  # of those runs, how many died the same way
    signature: str = ""  # what "the same way" means: "SIGABRT in tensorflow::BlockLSTMOp::Compute"
    not_held: tuple[str, ...] = ()  # what the sandbox could not have kept it from doing
