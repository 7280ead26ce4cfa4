"""The memory of a program over time: sampled seldom, kept in bounded space."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from faultlens.inspection import process
from faultlens.inspection.progress import Loop
from faultlens.records.crash import Limit, MemoryUse, Program, Sample
from faultlens.system.cgroup import Cgroup

BEGINNING_S = 0.2
FIRST_INTERVAL_S = 0.1
LONGEST_INTERVAL_S = 1.0
MAX_SAMPLES = 1000
DENSE_SAMPLES = 20  # at first the rest is read with every sample: wrappers replace themselves, limits are set early
SPARSE = 20  # later, with every so many
FILES = 5  # before Linux 6.2 open files must be counted one by one: with every so many samples


class Timeline:
    """`loop` tells how far the program has come, `gpu` how much memory of GPUs it has; either may not know."""

    def __init__(
        self,
        pid: int,
        cgroup: Cgroup | None,
        redact: bool,
        loop: Callable[[], Loop | None] = lambda: None,
        gpu: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.pid = pid
        self.redact = redact
        self.cgroup = cgroup
        self.samples: list[Sample] = []
        self.memory: MemoryUse | None = None  # the last that was seen
        self.limits: dict[str, Limit] = {}
        self.program: Program | None = None
        self._loop = loop
        self._gpu = gpu
        self._count = 0

    def interval(self, elapsed: float) -> float:
        """A tenth of a second at first, a second after a minute; the very beginning is watched more closely,
        because wrappers replace themselves and imports fail within moments."""
        if elapsed < BEGINNING_S:
            return BEGINNING_S / 8
        return min(max(FIRST_INTERVAL_S, elapsed / 60), LONGEST_INTERVAL_S)

    def take(self, elapsed: float, fully: bool = False) -> None:
        sample = process.sample(self.pid, elapsed, self.cgroup)
        if sample.rss is None:
            return  # it has ended
        self._count += 1
        if fully or self._count <= DENSE_SAMPLES or self._count % SPARSE == 0:
            self.memory = process.memory_use(self.pid)
            self.limits = process.resource_limits(self.pid) or self.limits
            self.program = process.program(self.pid, self.redact)
        files = process.open_files(self.pid, may_count=self._count % FILES == 0)
        loop = self._loop()
        steps = loop.made if loop else None
        self.samples.append(replace(sample, open_files=files, steps=steps, gpu_used=self._gpu()))
        if len(self.samples) > MAX_SAMPLES:
            del self.samples[1::2]

    def take_last_limits(self) -> None:
        """Those that a program set for itself: it may not have lived until the next sample."""
        self.limits = process.resource_limits(self.pid) or self.limits
