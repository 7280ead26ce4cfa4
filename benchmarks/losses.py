"""What is lost when a save is interrupted: by Keras and TensorFlow themselves, and through faultlens."""

from __future__ import annotations

import errno
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from measure import HERE, Bench, Table

sys.path.append(str(HERE.parent / "tests" / "saving"))  # behind our own: some names are the same

from injector import SPACE, Action, Kind, Plan
from memory_limit import can_be_limited
from subjects import Format, Subject, Way
from trials import Trial
from warm import Warm

INSTANTS: dict[Format, int] = {"keras": 1000, "weights": 300, "saved_model": 150, "checkpoint": 300, "manager": 300}
LIMITS = range(2, 42, 2)  # MiB
SAMPLES = 2  # of what may be on the disk, by chance, after each call; besides the regular ones
MIB = 1 << 20
COLUMNS: dict[str, tuple[Way, Format]] = {
    "`.keras`, plain": ("plain", "keras"),
    "`.keras`, ours": ("faultlens", "keras"),
    "`.weights.h5`, plain": ("plain", "weights"),
    "`.weights.h5`, ours": ("faultlens", "weights"),
    "SavedModel, plain": ("plain", "saved_model"),
    "SavedModel, ours": ("faultlens", "saved_model"),
    "checkpoint, plain": ("plain", "checkpoint"),
    "checkpoint, `CheckpointManager`": ("plain", "manager"),
    "checkpoint, ours": ("faultlens", "checkpoint"),
}
TEXT = """\
A small model (250 kB with the state of Adam) has been saved twice to the same name; the third save is interrupted.
Lost: afterwards neither the second nor the third can be loaded and is what it was, bit for bit; or the save had
returned, and the third is not there. Each cell: lost, of so many trials. "Plain" is `model.save`, `save_weights`,
`export` and `tf.train.Checkpoint.write` to the same name, loaded from there. `CheckpointManager` keeps two; loaded is
what `tf.train.latest_checkpoint` names, though the one before may be whole. "Ours" is `faultlens.save`, keeping two,
and `faultlens.load`.

Calls are those that change files, seen by a seccomp filter: every one of them once (a kill, an error), or every one
and all that follow (a full disk, on which half of the first write still has room). The instants are spread evenly over
the time of the save. For the power cut, the calls of one save are recorded, and every state is built that the disk may
be in after each of them, by what fsync promises and no more. Memory is limited by a control group, in steps of 2 MiB
above what the process has before."""


@dataclass
class Count:
    lost: int = 0
    tried: int = 0

    def add(self, lost: bool) -> None:
        self.lost += lost
        self.tried += 1

    def __str__(self) -> str:
        return (
            f"**{self.lost}** of {self.tried}" if self.lost else f"0 of {self.tried}" if self.tried else "not measured"
        )


Interruption = Callable[[Bench, Warm, Subject], Iterator[bool]]


def run(bench: Bench) -> Table:
    table = Table("Interrupted saves", TEXT, ("", *COLUMNS))
    with Warm(bench.folder / "losses", bench.python) as warm:
        for name, interruption in INTERRUPTIONS.items():
            counts = {column: Count() for column in COLUMNS}
            for column, subject in COLUMNS.items():
                for lost in interruption(bench, warm, Subject(*subject)):
                    counts[column].add(lost)
                print(f"{name}, {column}: {counts[column]}", flush=True)
            table.rows.append([name, *map(str, counts.values())])
            table.data[name] = {column: vars(count) for column, count in counts.items()}
    return table


def _at_an_instant(bench: Bench, warm: Warm, subject: Subject) -> Iterator[bool]:
    chance, seconds = random.Random(0), warm.seconds(subject)
    for _ in range(bench.scaled(INSTANTS[subject.format])):
        yield warm.trial(subject, Trial(kill_in=chance.uniform(0, seconds))).lost


def _at_every_call(plan: Callable[[int], Plan], kinds: Kind | None = None) -> Interruption:
    def interruption(bench: Bench, warm: Warm, subject: Subject) -> Iterator[bool]:
        calls = warm.trial(subject, Trial(Plan(kinds=kinds) if kinds else Plan())).calls
        for at in range(1, calls + 1, 10 if bench.quick else 1):
            yield warm.trial(subject, Trial(plan(at))).lost

    return interruption


def _power_cut(_: Bench, warm: Warm, subject: Subject) -> Iterator[bool]:
    yield from (verdict.lost for verdict in warm.power_cuts(subject, SAMPLES))


def _little_memory(_: Bench, warm: Warm, subject: Subject) -> Iterator[bool]:
    if can_be_limited():
        yield from (warm.trial(subject, Trial(memory=limit * MIB)).lost for limit in LIMITS)


INTERRUPTIONS: dict[str, Interruption] = {
    "killed at any instant": _at_an_instant,
    "killed before a call": _at_every_call(lambda at: Plan(Action.KILL_BEFORE, at)),
    "killed halfway through a write": _at_every_call(
        lambda at: Plan(Action.KILL_HALFWAY, at, kinds=Kind.WRITE), kinds=Kind.WRITE
    ),
    "the disk is full from a call on": _at_every_call(
        lambda at: Plan(Action.FAIL_HALFWAY, at, errno.ENOSPC, later=SPACE)
    ),
    "an error of the disk (EIO) at a call": _at_every_call(lambda at: Plan(Action.FAIL, at, errno.EIO)),
    "the power fails": _power_cut,
    "too little memory": _little_memory,
}
