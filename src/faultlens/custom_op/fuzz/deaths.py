"""How a process ends that tries an input, and which block of memory it misused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from faultlens import guard_alloc
from faultlens.guard_alloc.blocks import misuse_of, record
from faultlens.inspection import death as inspected
from faultlens.inspection.siginfo import parse
from faultlens.records.crash import Crash, FencedBlock, Hunt, Misuse
from faultlens.sandbox.warm.autopsy import Autopsies, Told


class Touched(NamedTuple):
    """A block between guards that was misused."""

    misuse: Misuse
    seen: Literal["access", "free", "exit"]
    block: guard_alloc.Allocation


class Death(NamedTuple):
    """How the process ended that tried an input."""

    kind: str  # "deadly", "endless", "greedy"
    reason: str
    crash: Crash | None = None  # of the first that died this way
    touched: Touched | None = None  # by this very process
    busy: bool = True  # it was computing, not waiting, when it had taken too long

    @property
    def block(self) -> FencedBlock | None:
        return record(*self.touched, self.crash.mappings) if self.touched and self.crash else None

    @property
    def hunted(self) -> Crash | None:
        """The crash, as the guard allocator explains it."""
        block = self.block
        if self.crash is None or block is None or self.touched is None:
            return self.crash
        fault = self.crash.fault
        if fault is not None and self.touched.seen == "access":
            address = type(block.start)(block.start + block.offset)
            fault = replace(fault, address=address)
        return replace(self.crash, fault=fault, hunt=Hunt(watched="tensors", block=block))


class GuardedAutopsies(Autopsies):
    """Deaths that look alike are looked at once, but each has touched a block of its own."""

    table: Path | None = None  # of the guard allocator
    touched: Touched | None = None  # by the last process that died

    def of(self, death: inspected.Death, own: int) -> Told:
        self.touched = self._touched(death, own) if self.table else None
        return super().of(death, own)

    def _touched(self, death: inspected.Death, own: int) -> Touched | None:
        assert self.table is not None
        address = parse(death.faults[0].siginfo).address if death.faults else None
        block = guard_alloc.read(self.table, address, own) if address else None
        if block and (misuse := misuse_of(block)):
            return Touched(misuse, "access", block)
        found = guard_alloc.found(self.table, own)
        if found is None or found.block is None:
            return None
        return Touched(found.kind, "exit" if found.at_exit else "free", found.block)
