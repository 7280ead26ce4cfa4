"""Looks at the memory that is left while the program runs: warns once, and once asks it to end if that was wished."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable

from faultlens.inspection import process
from faultlens.inspection.progress import Loop
from faultlens.records.crash import LimitOf, StopRequest
from faultlens.supervise.memory_forecast import MemoryForecast, use_in_words, warning
from faultlens.supervise.oom_stop import GROWN, StopAt, StopRule
from faultlens.supervise.own_memory import OwnMemory
from faultlens.supervise.timeline import Timeline
from faultlens.system.memory_limit import MACHINE, TightestRoom
from faultlens.system.procfs import resident
from faultlens.text.sizes import in_words


class Watch:
    def __init__(
        self, timeline: Timeline, loop: Callable[[], Loop | None], stop_at: StopAt | None, tell: Callable[[str], None]
    ) -> None:
        self.request: StopRequest | None = None
        self.next_look = 0.0
        self._timeline = timeline
        self._loop = loop
        self._room = TightestRoom(timeline.cgroup)
        self._tell = tell
        self._forecast: MemoryForecast | None = MemoryForecast()  # None: it has been told
        self._next_forecast = 0.0
        self._rule = StopRule(stop_at) if stop_at else None  # None: not wished, or asked for already
        self._size = stop_at.own if stop_at else None
        self._own = OwnMemory(timeline.pid) if self._size is not None else None
        self._next_room = 0.0
        self._resident = 0  # bytes, at the last look
        self._would_stop = stop_at is not None

    def look(self, elapsed: float) -> None:
        try:
            self._look(elapsed)
        except Exception as error:  # whatever it is: the program goes on
            self.next_look = math.inf
            self._tell(f"the memory that is left is no longer watched: {error!r}")

    def take_over(self) -> bool:
        """Somebody else tells when memory will run out. False: it has been told."""
        told, self._forecast = self._forecast is None, None
        return not told

    def _look(self, elapsed: float) -> None:
        if self._rule and elapsed < self._next_room and not self._has_grown():
            self.next_look = min(self._next_room, elapsed + self._rule.glance_interval)
            return
        room, loop = self._room.look(elapsed), self._loop()
        if self._rule and room:
            own = self._own.look(elapsed) if self._own else 0
            reached = self._rule.reached(elapsed, room, loop.made if loop else None, own)
            if reached == "size":
                self._ask_to_end(elapsed, f"its memory has reached {in_words(own)}", own, self._size or 0, "program")
            elif reached:
                whose: LimitOf = "machine" if room.where == MACHINE else "control group"
                self._ask_to_end(elapsed, f"memory is at {use_in_words(room)}", room.used, room.limit, whose)
        if self._forecast and elapsed >= self._next_forecast:
            self._forecast.take(self._timeline.samples, room, loop)
            if self._forecast.forecast:
                self._warn(warning(self._forecast.forecast))
            else:
                self._next_forecast = elapsed + self._forecast.interval(elapsed)
        if self._rule:
            self._next_room = elapsed + self._rule.interval
            self._resident = resident(self._timeline.pid)
            self.next_look = min(self._next_room, elapsed + self._rule.glance_interval)
        else:
            self.next_look = self._next_forecast if self._forecast else math.inf

    def _has_grown(self) -> bool:
        return resident(self._timeline.pid) > self._resident + GROWN

    def _ask_to_end(self, elapsed: float, why: str, used: int, limit: int, whose: LimitOf) -> None:
        self._rule = self._forecast = None
        self.request = StopRequest(seconds=round(elapsed, 3), used=used, limit=limit, limit_of=whose)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.below_shells(self._timeline.pid), signal.SIGTERM)
        self._timeline.take(elapsed, fully=True)
        self._tell(f"{why}: asked the program to save and end (SIGTERM)")

    def _warn(self, text: str) -> None:
        self._forecast = None
        advice = "it will be asked to end before" if self._would_stop else "--stop-before-oom would let it save before"
        self._tell(f"{text}; {advice}")
