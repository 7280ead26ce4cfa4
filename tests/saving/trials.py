"""What is tried, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import power_cut
from children import LIMIT
from injector import Kind, Operation, Plan

EARLIER, BEFORE, AFTER = 1, 2, 3  # generations: two are there, the third is saved
SAVED = "saved"
UNTOUCHED = Plan()

Again = Literal["in the same process", "after a restart"]
Meanwhile = Literal["the folder is removed", "another saves", "another saves, and it dies"]


@dataclass(frozen=True)
class Trial:
    """One interrupted save."""

    plan: Plan = UNTOUCHED
    kill_in: float | None = None  # seconds after its beginning
    memory: int | None = None  # bytes that the child may use besides what it shares with its parent
    meanwhile: Meanwhile | None = None  # while it is stopped (STOP_BEFORE)
    again: Again | None = None  # it is saved once more, undisturbed; after a restart, by a process of the same number
    background: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of it."""

    ended: int  # the exit status; negative: a signal
    error: str  # of the save; empty if it returned, or did not live to tell
    saved: bool  # it returned
    seconds: float
    calls: int  # that were counted
    hit: Kind  # at which kind of call it happened; none: there were not so many calls
    found: int | None  # which generation
    at_path: int | None  # what a program without faultlens finds there
    allowed: tuple[int, ...]
    why: str  # it was not found
    again: str  # "saved", or the error of the second try
    other: str  # the same of the save that happened meanwhile
    left: tuple[str, ...]  # files that an undisturbed save does not leave, with # for numbers
    intact: bool  # files beside it

    @property
    def lost(self) -> bool:
        return self.found not in self.allowed or not self.intact

    @property
    def hung(self) -> bool:
        return self.seconds >= LIMIT


@dataclass(frozen=True)
class Recording:
    """Undisturbed saves: all their calls, and the folder before and after them."""

    operations: list[Operation]
    folder: Path  # the name it had meanwhile
    before: Path
    after: Path
    inodes: dict[str, int]  # before, by name below the folder
    times: dict[int, int]  # after: when each file was last changed (ns), by inode
    finished: dict[int, int]  # by generation: after how many calls its save had returned

    def disk(self, synced: bool = True) -> power_cut.Disk:
        """Not `synced`: as if the save had never called fsync."""
        without = [replace(each, result=-1) if each.kind == Kind.SYNC else each for each in self.operations]
        operations = self.operations if synced else without
        return power_cut.Disk(operations, self.folder, self.before, self.inodes, self.times)

    def allowed(self, calls: int) -> tuple[int | None, ...]:
        """What may be found after so many calls: the last save that had returned, or the one under way."""
        done = max((generation for generation, after in self.finished.items() if after <= calls), default=None)
        if done == max(self.finished):
            return (done,)
        return done, min(generation for generation, after in self.finished.items() if after > calls)
