"""What is known of a process that is to be looked at, and how it is to be done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from faultlens.inspection.death import Death

if TYPE_CHECKING:
    from faultlens.inspection.freeze import Freeze
    from faultlens.records.crash import CaptureMethod


class Subject(NamedTuple):
    death: Death
    method: CaptureMethod = "agent"  # how its death was seen
    freeze: Freeze | None = None  # of whoever holds it already; None: it is stopped for the look
    guard_table: Path | None = None  # of its blocks between guards, with `run --hunt`
    redact: bool = True
    contents: bool = True  # the values of tensors may be kept, up to a limit
    with_stacks: bool = True
