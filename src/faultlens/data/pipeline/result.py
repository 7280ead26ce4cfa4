"""What a look at a pipeline brought."""

from __future__ import annotations

from typing import Literal

from faultlens.errors import FaultlensError
from faultlens.records.crash import Record
from faultlens.records.severity import Severity, is_grave, worst

ConcernKind = Literal[
    "converted",  # values that the promised type cannot hold
    "counts",  # as many labels as images, and then not
    "empty",
    "last-batch",
    "not-deterministic",
    "not-finite",
    "one-pass",  # nothing comes the second time
    "raises",
    "reused-buffer",
    "shape",  # not like the others
    "shared-object",
]


class Concern(Record, frozen=True):
    """One thing that was seen, with its evidence."""

    kind: ConcernKind
    severity: Severity
    reason: str
    element: int | None = None
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.reason} {self.advice}".rstrip()


class PipelineCheck(Record, frozen=True):
    """True where there is nothing worse than a note: `assert faultlens.data.check(dataset)`."""

    concerns: tuple[Concern, ...]
    elements: int  # that were looked at
    ended: bool  # there were no more

    def __bool__(self) -> bool:
        return not is_grave(worst(self.concerns))

    def __str__(self) -> str:
        what = "all of them" if self.ended else "the first ones"
        seen = f"{self.elements} element{'s' * (self.elements != 1)} looked at ({what})"
        return "\n".join([f"{seen}: {'nothing wrong' if self else 'not in order'}", *map(str, self.concerns)])

    def raise_if_bad(self) -> None:
        if not self:
            bad = [concern for concern in self.concerns if concern.severity != "note"]
            raise FaultlensError("\n".join(map(str, bad)))
