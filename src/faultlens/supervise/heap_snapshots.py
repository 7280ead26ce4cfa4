"""Heap snapshots: asks the program what its memory is used for, one question at a time; nothing is waited for."""

from __future__ import annotations

import math
from typing import NamedTuple

from faultlens.agent.area import SharedArea
from faultlens.inspection import census
from faultlens.records.crash import Sample
from faultlens.supervise.retainers import HeapSnapshot, Inside, read_answer
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Room
from faultlens.system.memory_limit import tightest_room


class _Asked(NamedTuple):
    """A snapshot whose answer from inside is awaited."""

    sample: Sample
    outside: census.Outside
    room: Room | None
    until: float
    notes_read: int


class HeapSnapshots:
    def __init__(self, timeline: Timeline, area: SharedArea | None) -> None:
        self.best: HeapSnapshot | None = None  # the last one that was answered; if none was, the last
        self._timeline = timeline
        self._area = area
        self._asked: _Asked | None = None

    @property
    def under_way(self) -> bool:
        return self._asked is not None

    def ask(self, elapsed: float, patience: float) -> None:
        """`patience`: for how many seconds an answer from inside is waited for."""
        pid, read = self._timeline.pid, 0
        if self._area is not None:
            read = self._area.notes_size()
            self._area.ask_for_snapshot(pid)
        until = elapsed + (patience if self._area is not None else 0)
        room = tightest_room(self._timeline.cgroup)
        self._asked = _Asked(self._timeline.samples[-1], census.look(pid), room, until, read)

    def answered(self, elapsed: float) -> HeapSnapshot | None:
        """None: not yet."""
        asked = self._asked
        if asked is None:
            return None
        answer = self._answer(asked.notes_read)
        if answer is None and elapsed < asked.until:
            return None
        if self._area is not None:
            self._area.ask_for_snapshot(0)
        inside = answer if answer is not None and answer.problem is None else None
        snapshot = HeapSnapshot(asked.sample.seconds, asked.sample.steps, asked.outside, inside, asked.room)
        if inside is not None or self.best is None or self.best.inside is None:
            self.best = snapshot
        self._asked = None
        return snapshot

    def end(self) -> None:
        """The program has ended: what it has not said it will not say."""
        self.answered(math.inf)

    def _answer(self, read: int) -> Inside | None:
        lines = self._area.notes_since(read).splitlines() if self._area is not None else []
        answers = (read_answer(line, self._timeline.pid) for line in lines if b'"census"' in line)
        return next((answer for answer in answers if answer is not None), None)
