"""Where does the program stand when memory is nearly used up? Who is killed for memory cannot say it any more.

Looked at from outside (inspection/innermost.py), when little is left or will be gone with the next samples, and again
whenever much of that has gone, too."""

from __future__ import annotations

import math
from collections.abc import Callable

from faultlens.inspection import process
from faultlens.inspection.innermost import innermost_lines
from faultlens.records.crash import LastLines
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Room
from faultlens.system.isolated import IsolatedError, run_isolated
from faultlens.system.memory_limit import tightest_room
from faultlens.text.sizes import MIB

LITTLE = 0.15  # of the limit
SAMPLES_AHEAD = 3
GONE = 0.6  # of what was left at the last look
LEAST_LEFT = 16 * MIB  # the look itself takes some
LOOK_S = 2.0
LOOK_MEMORY = 256 * MIB
READ_S = 60.0


class LastLinesWatch:
    def __init__(self, timeline: Timeline, tell: Callable[[str], None]) -> None:
        self.seen: LastLines | None = None
        self._timeline = timeline
        self._tell = tell
        self._room: Room | None = None
        self._next_reading = 0.0
        self._shown = self._shown_then = 0  # by the last sample, and when the room was read
        self._left = math.inf  # at the last look
        self._done = False

    def look(self, elapsed: float) -> None:
        """With every sample."""
        if self._done or not self._timeline.samples:
            return
        try:
            self._look(elapsed)
        except Exception as error:  # whatever it is: the program goes on
            self._done = True
            self._tell(f"where it stands when memory runs out is no longer watched: {error!r}")

    def _look(self, elapsed: float) -> None:
        sample = self._timeline.samples[-1]
        shown = max(sample.rss or 0, sample.cgroup_used or 0)
        soon = SAMPLES_AHEAD * max(shown - self._shown, 0)
        self._shown = shown
        if self._room is None or elapsed >= self._next_reading or self._is_close(self._left_now(), soon):
            self._room = tightest_room(self._timeline.cgroup)
            self._shown_then, self._next_reading = shown, elapsed + READ_S
        left = self._left_now()
        if left > self._left / GONE:
            self._left = math.inf  # some was given back
        if LEAST_LEFT <= left < self._left * GONE and self._is_close(left, soon):
            self._left = left
            self._take(elapsed)

    def _left_now(self) -> float:
        return self._room.left - (self._shown - self._shown_then) if self._room else math.inf

    def _is_close(self, left: float, soon: int) -> bool:
        return self._room is not None and left <= max(LITTLE * self._room.limit, soon)

    def _take(self, elapsed: float) -> None:
        pid = process.below_shells(self._timeline.pid)
        try:
            frames = run_isolated(LOOK_S, LOOK_MEMORY, innermost_lines, pid)
        except (IsolatedError, OSError):  # it has ended, or there is no process to be had for the look
            return
        if frames and self._room is not None:
            used = int(self._room.limit - self._left)
            self.seen = LastLines(seconds=round(elapsed, 3), used=used, limit=self._room.limit, frames=frames)
