"""What `run --hunt` found: a block between guards that was misused."""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Address, Record
from faultlens.records.threads import Frame

Misuse = Literal["overflow", "underflow", "use after free", "double free", "invalid free"]


class FencedBlock(Record, frozen=True):
    """A block of memory between guards that was misused: whose it was, and what was done to it."""

    misuse: Misuse
    # "access": at the very instruction; "free": when it was freed; "exit": when the program ended; "death": when it
    # died of something else.
    seen: Literal["access", "free", "exit", "death"]
    start: Address
    size: int
    offset: int  # of what was touched or freed, from the beginning of the block
    made: tuple[Frame, ...] = ()  # who allocated it …
    made_by: int = 0  # … on which thread
    made_before: float | None = None  # … so many seconds before the end
    freed: tuple[Frame, ...] = ()
    freed_by: int | None = None
    freed_before: float | None = None


class Hunt(Record, frozen=True):
    """What `run --hunt` watched for: some of the program's blocks were put between guards."""

    fenced: int = 0  # blocks, ever
    one_of: int | None = None  # of how many allocations each was one, about
    watched: Literal["some", "tensors", "all"] = "some"  # what was to be fenced, as long as there was room
    block: FencedBlock | None = None  # that was misused
    problem: str | None = None  # why there was no fence
