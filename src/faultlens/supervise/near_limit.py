"""What holds the memory when it is nearly used up? The program is asked once, so that a death can be explained.

The memory that is left is read when what the samples show has grown by a third of what was missing, and now and then.
Not asked is a program that has so little left that the snapshot itself might be too much."""

from __future__ import annotations

from collections.abc import Callable

from faultlens.records.crash import Sample
from faultlens.supervise.heap_snapshots import HeapSnapshots
from faultlens.supervise.oom_stop import StopAt
from faultlens.supervise.own_memory import OwnMemory
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Room
from faultlens.system.memory_limit import tightest_room
from faultlens.text.sizes import MIB

NEAR = 0.85  # of the limit, or of where the program will be asked to end
LEAST_LEFT = 64 * MIB  # a list of all Python objects is made: 8 bytes each
ANSWER_S = 60.0  # a long call may be under way
OFTEN_S, LATER, SELDOM_S = 1.0, 0.1, 60.0  # seconds between two readings, and the share of the time passed


class NearLimit:
    def __init__(
        self,
        timeline: Timeline,
        snapshots: HeapSnapshots,
        stop_at: StopAt | None,
        others_ask: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        """`others_ask`: whether somebody else will take a snapshot soon, which serves us too."""
        self._timeline = timeline
        self._snapshots = snapshots
        self._stop_at = stop_at
        self._own = OwnMemory(timeline.pid)
        self._others_ask = others_ask
        self._tell = tell
        self._next = 0.0
        self._look_at = 0.0  # what a sample must show for an earlier reading
        self._is_near = self._asked = self._done = False

    def look(self, elapsed: float) -> None:
        """With every sample."""
        if self._done or not self._timeline.samples:
            return
        try:
            self._look(elapsed, self._timeline.samples[-1])
        except Exception as error:  # whatever it is: the program goes on
            self._done = True
            self._tell(f"what holds the memory is no longer watched: {error!r}")

    def _look(self, elapsed: float, sample: Sample) -> None:
        if self._asked:
            self._done = self._snapshots.answered(elapsed) is not None
            return
        if not self._is_near and (elapsed >= self._next or _shown(sample) >= self._look_at):
            self._read(elapsed, sample)
        if not self._is_near or self._snapshots.under_way or self._others_ask():
            return
        best = self._snapshots.best
        if best and best.inside and best.room and best.room.used >= self._near(best.room):
            self._done = True  # others did
        else:
            self._snapshots.ask(elapsed, ANSWER_S)
            self._asked = True

    def _read(self, elapsed: float, sample: Sample) -> None:
        self._next = elapsed + min(max(OFTEN_S, elapsed * LATER), SELDOM_S)
        room = tightest_room(self._timeline.cgroup)
        if room is not None:
            missing = self._near(room) - room.used
            if self._stop_at and self._stop_at.own is not None:
                missing = min(missing, NEAR * self._stop_at.own - self._own.look(elapsed))
            self._look_at = _shown(sample) + max(missing, MIB) / 3
            self._is_near = missing <= 0 and room.left >= LEAST_LEFT

    def _near(self, room: Room) -> float:
        return NEAR * min(room.limit, self._stop_at.threshold(room.limit) if self._stop_at else room.limit)


def _shown(sample: Sample) -> float:
    """Grows if the program does, or another process of its group: even while it takes the place of files."""
    return (sample.rss or 0) + (sample.cgroup_used or 0)
