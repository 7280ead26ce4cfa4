"""Watches for leaks: two heap snapshots are taken of what grows, and it is told once.

Nothing is done before `supervise/growth.py` suspects something. Then a heap snapshot is taken, from outside and
inside. If the growth goes on, at half its rate or more, another is taken: what grew in between holds the memory.
Not told is

- native memory without a seen owner in the first pass through the data, while a `Dataset.cache` lives: it is filled;
- objects without a seen owner, until Python has collected all garbage once in between: they may be that;
- the results of a `predict`, which are kept until it is over;
- memory that grows where no steps are known, unless it will be at its limit soon: data may be being loaded;
- shared memory that neither the program nor a process below it has open or mapped: it is somebody else's;
- memory whose growth comes to an end by itself (`is_harmless` in supervise/retainers.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from faultlens.diagnosis.evidence.leaks import end_foretold, told
from faultlens.inspection.progress import Loop
from faultlens.records.crash import Growth, GrowthKind, Sample
from faultlens.supervise.growth import Trend, trends, value_of
from faultlens.supervise.growth_record import record, until
from faultlens.supervise.heap_snapshots import HeapSnapshots
from faultlens.supervise.retainers import HeapSnapshot, has_owner, holders, is_harmless, is_undecided
from faultlens.supervise.timeline import Timeline

CLOSEST_S = 1.0  # between two looks at the timeline
LATER, LATEST_S = 0.1, 60.0  # share of the time that has passed, at most so long
ANSWER_S = 4.0  # for which an answer from inside is waited
ANSWER_EVERY_S = 0.2
GOES_ON_S, GOES_ON_STEPS = 2.0, 30  # between the two snapshots
GOES_ON_WITHOUT_STEPS_S = 10.0
PATIENCE = 4  # how many more snapshots are taken of what may be garbage
# Snapshots: each takes a quarter of a second of the program.
FREE_SNAPSHOTS, SNAPSHOTS_A_MINUTE = 4, 1


class _Suspicion(NamedTuple):
    kinds: tuple[GrowthKind, ...]
    snapshot: HeapSnapshot


class Leaks:
    def __init__(
        self,
        timeline: Timeline,
        snapshots: HeapSnapshots,
        loop: Callable[[], Loop | None],
        tell: Callable[[str], None],
        foretell: Callable[[], bool] = lambda: True,
    ) -> None:
        """`foretell`: whether it is still to be told when memory will run out, which is told once."""
        self.next_look = 0.0
        self._timeline = timeline
        self._snapshots = snapshots
        self._loop = loop
        self._tell = tell
        self._foretell = foretell
        self._found: dict[GrowthKind, Growth] = {}
        self._doubtful: dict[GrowthKind, Growth] = {}  # that may come to an end by itself
        self._kinds: tuple[GrowthKind, ...] = ()  # that are being looked at
        self._asked = False
        self._suspicion: _Suspicion | None = None
        self._count = 0  # of snapshots
        self._tries = 0

    def look(self, elapsed: float) -> None:
        try:
            self.next_look = elapsed + self._step(elapsed)
        except Exception as error:  # whatever it is: the program goes on
            self.next_look = math.inf
            self._tell(f"leaks are no longer watched for: {error!r}")

    @property
    def is_comparing(self) -> bool:
        """Between its two snapshots no others may be taken: what grew is counted from one to the next."""
        return self._asked or self._suspicion is not None

    def growth(self, died: bool) -> tuple[Growth, ...]:
        """All that was found. Of a program that died also what was only suspected."""
        samples = self._timeline.samples
        found = [until(growth, self._sample(growth.what)) for growth in self._found.values()]
        for trend in trends(samples) if died else ():
            if trend.what not in self._found:
                seen = self._doubtful.get(trend.what)
                found.append(record(trend, self._timeline, seen.holders if seen else ()))
        return tuple(
            sorted(found, key=lambda growth: growth.seconds_left if growth.seconds_left is not None else math.inf)
        )

    # ------------------------------------------------------------------------------------- one step

    def _step(self, elapsed: float) -> float:
        """Returns the seconds until the next one."""
        usual = min(max(CLOSEST_S, elapsed * LATER), LATEST_S)
        if not self._timeline.samples:
            return CLOSEST_S
        if self._asked:
            snapshot = self._snapshots.answered(elapsed)
            if snapshot is None:
                return ANSWER_EVERY_S
            self._asked = False
            return self._compare(snapshot, usual)
        if self._snapshots.under_way:
            return CLOSEST_S  # somebody else's
        suspected = [trend for trend in trends(self._timeline.samples) if trend.what not in self._found]
        if self._suspicion is None:
            if suspected and self._count < FREE_SNAPSHOTS + SNAPSHOTS_A_MINUTE * elapsed / 60:
                self._kinds = tuple(trend.what for trend in suspected)
                self._ask(elapsed)
                return ANSWER_EVERY_S
            return usual
        last, first = self._timeline.samples[-1], self._suspicion.snapshot
        if suspected and suspected[0].by_steps:
            early = last.seconds < first.seconds + GOES_ON_S or (last.steps or 0) < (first.steps or 0) + GOES_ON_STEPS
        else:
            early = last.seconds < first.seconds + GOES_ON_WITHOUT_STEPS_S
        if suspected and early:
            return CLOSEST_S
        if any(map(self._goes_on, suspected)):
            self._ask(elapsed)
            return ANSWER_EVERY_S
        self._suspicion, self._tries = None, 0
        return usual

    def _goes_on(self, trend: Trend) -> bool:
        """It has grown since the first snapshot, at half its rate or more."""
        assert self._suspicion is not None
        before, now = self._sample(trend.what, self._suspicion.snapshot.seconds), self._sample(trend.what)
        if trend.what not in self._suspicion.kinds or before is None or now is None:
            return False
        rise = (value_of(trend.what, now) or 0) - (value_of(trend.what, before) or 0)
        far = (now.steps or 0) - (before.steps or 0) if trend.by_steps else now.seconds - before.seconds
        return far > 0 and rise >= trend.slope * far / 2

    def _sample(self, what: GrowthKind, until: float = math.inf) -> Sample | None:
        """The last one that has such a value."""
        for sample in reversed(self._timeline.samples):
            if sample.seconds <= until and value_of(what, sample) is not None:
                return sample
        return None

    # --------------------------------------------------------------------------------- heap snapshots

    def _ask(self, elapsed: float) -> None:
        self._count += 1
        self._asked = True
        self._snapshots.ask(elapsed, ANSWER_S)

    def _compare(self, snapshot: HeapSnapshot, usual: float) -> float:
        if self._suspicion is None:
            self._suspicion = _Suspicion(self._kinds, snapshot)
            return CLOSEST_S
        first, self._tries = self._suspicion.snapshot, self._tries + 1
        undecided = False
        for trend in trends(self._timeline.samples):
            if trend.what in self._found or not self._goes_on(trend):
                continue
            growth = record(trend, self._timeline, holders(trend.what, first, snapshot, trend.slope))
            verdict = self._is_leak(growth, first, snapshot, trend.slope)
            if verdict:
                self._found[trend.what] = growth
                self._say(growth)
            else:
                self._doubtful[trend.what] = growth
            undecided |= verdict is None
        if undecided and self._tries < PATIENCE:
            self._suspicion = _Suspicion(self._kinds, snapshot)  # what grew is counted from one to the next
            return usual * self._tries
        self._suspicion, self._tries = None, 0
        return usual * 2

    def _say(self, growth: Growth) -> None:
        end = end_foretold(growth)
        if growth.what == "memory" and end and not self._foretell():
            end = None
        self._tell(told(growth) + (f"; {end}" if end else ""))

    def _is_leak(self, growth: Growth, first: HeapSnapshot, second: HeapSnapshot, rate: float) -> bool | None:
        """None: it cannot be told yet."""
        loop = self._loop()
        if growth.per_step is None and growth.what in ("memory", "GPU memory") and end_foretold(growth) is None:
            return False
        if growth.what != "memory":
            return bool(growth.holders) or growth.what != "shared memory"
        if is_harmless(first, second, rate) or (loop is not None and loop.phase == "predict"):
            return False
        if has_owner(growth):
            return True
        if second.inside is not None and second.inside.caches and (loop is None or loop.epoch < 2):
            return False
        return None if is_undecided(first, second) and self._tries < PATIENCE else True
