from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.doctor.raising import raise_group
from faultlens.knowledge.needs import MEMORY
from faultlens.records.crash import MachineState
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.allowance import Allowance
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.sizes import GIB, in_words

ENOUGH = 2 * GIB


class Left(NamedTuple):
    size: int
    named: str
    source: str
    fixes: tuple[Fix, ...]


class Memory(Check):
    """
    How much memory is left for one more program: in the control group and those above it (what the kernel can drop
    does not count as used, swap counts as free), and on the machine.

    Memory that is backed by files (TensorFlow's own libraries) can be dropped, so what counts is the rest. Measured in
    a control group without swap: TensorFlow 2.21 is killed while it is imported with 177 MiB and lives with 186; a
    small model is killed with 195 MiB and trained with 204. TensorFlow 2.13 needs about the same. The check stays a
    little below: what it reports is killed for certain. Large models need more than it knows of.
    """

    name = "memory"
    looks_at = "memory left in the control group and on the machine, against what TensorFlow needs to start"
    position = 70
    causes = ("out-of-memory-kill",)

    def examine(self, target: TargetEnvironment) -> Examination:
        return self.judge(target.allowance, target.machine)

    def judge(self, allowance: Allowance, machine: MachineState) -> Examination:
        places = list(_places(allowance, machine))
        if not places:
            return self.skipped("neither /proc/meminfo nor a control group tells how much memory is left")
        least = min(places, key=lambda left: left.size)
        summary = f"{in_words(least.size)} left {least.named}; a small training needs {in_words(MEMORY.training)}"
        return self.judged(self._findings(least), summary, _details(places, allowance))

    def _findings(self, left: Left) -> Iterator[Finding]:
        evidence = [(f"{in_words(left.size)} can still be had", left.source)]
        if left.size < MEMORY.importing:
            title = f"{in_words(left.size)} of memory left {left.named}: importing TensorFlow needs"
            yield self.error(f"{title} {in_words(MEMORY.importing)}", evidence, left.fixes)
        elif left.size < MEMORY.training:
            title = (
                f"{in_words(left.size)} of memory left {left.named}: enough to import TensorFlow, but training needs"
            )
            yield self.warning(f"{title} {in_words(MEMORY.training)}", evidence, left.fixes)


def _places(allowance: Allowance, machine: MachineState) -> Iterator[Left]:
    if (room := allowance.memory) is not None:
        raised = raise_group(room, room.used + ENOUGH, "--memory=2g")
        named = f"in the control group ({in_words(room.limit)})"
        yield Left(max(room.left, 0), named, room.where, (raised, _SEE_WHO))
    if machine.memory_available is not None:
        size = machine.memory_available + (allowance.swap_free or 0)
        yield Left(size, "on this machine", "/proc/meminfo", (_SEE_WHO,))


_SEE_WHO = fix("see who uses it, and end what is not needed", "ps -eo pid,rss,args --sort=-rss | head")


def _details(places: Iterable[Left], allowance: Allowance) -> Iterator[str]:
    for left in places:
        yield f"{in_words(left.size)} left {left.named} ({left.source})"
    if allowance.swap_free is not None:
        yield f"swap: {in_words(allowance.swap_free)} free" if allowance.swap_free else "no swap"
    if allowance.huge_pages:
        yield f"transparent huge pages: {allowance.huge_pages}"
