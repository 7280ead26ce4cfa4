"""When will memory run out? How much is left, how fast the program grows, and whether it will have ended before.

A forecast is made only where it is as good as certain:

- the growth is one that `supervise/growth.py` calls steady, with every step of a loop that is known;
- in the first epoch `Dataset.cache` and the like grow with every step too, and stop when it is over: until then only
  what will not even fit into this epoch counts, and after it only what happened since;
- a program that will have made all its steps before is not told of, nor a growth that slows down and will have ended;
- nothing is foretold for longer than three times the time in which the growth was watched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.inspection.progress import Loop
from faultlens.records.crash import Sample
from faultlens.supervise.growth import Trend, trends, value_of
from faultlens.system.cgroup import Room
from faultlens.system.memory_limit import MACHINE
from faultlens.text.sizes import in_words

FARTHEST = 3.0  # times the time watched
CLOSEST_S, FARTHEST_S = 1.0, 60.0  # between two looks


class Forecast(NamedTuple):
    room: Room
    loop: Loop
    per_step: float  # bytes
    per_second: float

    @property
    def steps_left(self) -> int:
        return int(max(self.room.left, 0) / self.per_step)

    @property
    def seconds_left(self) -> float:
        return max(self.room.left, 0) / self.per_second


class MemoryForecast:
    """Fed now and then while the program runs; `forecast` is what was found twice in a row."""

    def __init__(self) -> None:
        self.forecast: Forecast | None = None
        self._suspected = False
        self._epoch = 0
        self._since = 0  # steps made before what counts

    def interval(self, elapsed: float) -> float:
        return min(max(CLOSEST_S, elapsed / 20), FARTHEST_S)

    def take(self, samples: Sequence[Sample], room: Room | None, loop: Loop | None) -> None:
        if loop is None or room is None:
            return
        epoch = min(_pass(loop), 2)
        if epoch != self._epoch:
            self._epoch, self._since, self._suspected = epoch, loop.made, False
        found = forecast([sample for sample in samples if (sample.steps or 0) >= self._since], room, loop)
        self.forecast = found if self._suspected else None
        self._suspected = found is not None


def forecast(samples: Sequence[Sample], room: Room, loop: Loop) -> Forecast | None:
    """From samples of one and the same work."""
    growing = [trend for trend in trends(samples) if trend.what in ("memory", "shared memory") and trend.by_steps]
    per_step = sum(trend.slope for trend in growing)
    per_second = sum(trend.per_second for trend in growing)
    if per_step <= 0 or per_second <= 0:
        return None
    found = Forecast(room, loop, per_step, per_second)
    watched = min(trend.seconds for trend in growing)
    ends_before = (
        found.steps_left >= steps_to_go(loop) or sum(_still_to_come(each, samples) for each in growing) < room.left
    )
    return None if ends_before or found.seconds_left > FARTHEST * watched else found


def _still_to_come(trend: Trend, samples: Sequence[Sample]) -> float:
    """How much more there will be in all if it goes on to slow down as it did; without end if it did not."""
    middle, width = (trend.first.at + trend.last.at) / 2, trend.last.at - trend.first.at
    near = [sample for sample in samples if 0 <= (sample.steps or 0) - middle <= width / 10]
    halfway = min((value for sample in near if (value := value_of(trend.what, sample)) is not None), default=0)
    before, after = halfway - trend.first.value, trend.last.value - halfway
    return after * after / (before - after) if before > after else math.inf


def steps_to_go(loop: Loop) -> float:
    """Until the growth will end by itself; 0 where that may be at any moment."""
    left = max(loop.steps - loop.step, 0)
    if _pass(loop) < 2:
        return left
    return left + (loop.epochs - loop.epoch) * loop.steps if loop.steps and loop.epochs else math.inf


def _pass(loop: Loop) -> int:
    """How often the program has begun to go through its data. A loop of its own begins to count anew."""
    return loop.epoch or (2 if loop.phase == "data" and loop.made >= 2 * loop.step else 1)


# ------------------------------------------------------------------------------------------- in words


def use_in_words(room: Room) -> str:
    """ "1.9 GiB (95%) of the 2 GiB that the control group may have"."""
    whose = "the machine has" if room.where == MACHINE else "the control group may have"
    return f"{in_words(room.used)} ({room.used / max(room.limit, 1):.0%}) of the {in_words(room.limit)} that {whose}"


def warning(found: Forecast) -> str:
    return (
        f"memory is at {use_in_words(found.room)}, and grows by {in_words(round(found.per_step))} with every step:"
        f" the kernel will kill the program in about {_duration(found.seconds_left)}, {_step_in_words(found)}"
    )


def _step_in_words(found: Forecast) -> str:
    loop = found.loop
    if not (loop.epoch and loop.steps):
        return f"after about {_rounded(found.steps_left):,} more steps"
    epochs, step = divmod(loop.step + found.steps_left, loop.steps)
    return f"near step {_rounded(max(step, 1)):,} of epoch {loop.epoch + epochs}"


def _rounded(number: int) -> int:
    """Two digits are all that is known."""
    return round(number, 2 - len(str(number))) if number else 0


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
