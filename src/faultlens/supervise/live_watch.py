"""The watch while the program lives: samples of its memory, leaks, and what is left until a limit."""

from __future__ import annotations

import math
from collections.abc import Callable

from faultlens.inspection.progress import Loop
from faultlens.supervise.backends.base import Backend, Started
from faultlens.supervise.gpu_memory import gpu_memory_of
from faultlens.supervise.heap_snapshots import HeapSnapshots
from faultlens.supervise.last_lines import LastLinesWatch
from faultlens.supervise.leaks import Leaks
from faultlens.supervise.memory_watch import Watch
from faultlens.supervise.near_limit import NearLimit
from faultlens.supervise.options import Options
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Cgroup


class LiveWatch:
    """If it fails, it says so, and the program goes on."""

    def __init__(
        self, program: Started, backend: Backend, cgroup: Cgroup | None, options: Options, tell: Callable[[str], None]
    ) -> None:
        def loop() -> Loop | None:
            return backend.loop_of(program.pid)

        self.timeline = Timeline(program.pid, cgroup, options.redact, loop, gpu_memory_of(program.pid))
        self.memory = Watch(self.timeline, loop, options.stop_at, tell)
        self.snapshots = HeapSnapshots(self.timeline, backend.area)
        self.leaks = Leaks(self.timeline, self.snapshots, loop, tell, self.memory.take_over)
        self.last_lines = LastLinesWatch(self.timeline, tell)
        self._near_limit = NearLimit(
            self.timeline, self.snapshots, options.stop_at, lambda: self.leaks.is_comparing, tell
        )
        self._tell = tell
        self._next_sample = 0.0
        self._has_failed = False

    @property
    def next_look(self) -> float:
        if self._has_failed:
            return math.inf
        return min(self._next_sample, self.memory.next_look, self.leaks.next_look)

    def look(self, elapsed: float) -> None:
        if self._has_failed:
            return
        try:
            self._look(elapsed)
        except Exception as error:
            self._has_failed = True
            self._tell(f"its memory is no longer watched: {type(error).__name__}: {error}")

    def _look(self, elapsed: float) -> None:
        if elapsed >= self._next_sample:
            self.timeline.take(elapsed)
            self._near_limit.look(elapsed)
            self.last_lines.look(elapsed)
            self._next_sample = elapsed + self.timeline.interval(elapsed)
        if elapsed >= self.memory.next_look:
            self.memory.look(elapsed)
        if elapsed >= self.leaks.next_look:
            self.leaks.look(elapsed)
