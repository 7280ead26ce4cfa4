"""Must the program be asked to end now, or the kernel will kill it? The rule of `--stop-before-oom`.

It is asked when the memory of the machine or of the control group is used up to the share that the user named, or when
its own memory reaches the size that the user named; and earlier if what is left will not do until it has
saved: a program that saves at the end of a step grows by one step more, or by two. How much that is, its climb tells:
three rises in a row that are alike, each above all that was used before. Memory that is taken once, or comes and goes,
is no climb."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.system.cgroup import Room
from faultlens.text.sizes import GIB, MIB, from_words

SAVE_NEEDS = 64 * MIB  # what a save takes besides the model
STEPS_AHEAD = 2
SECONDS_AHEAD = 0.06
RISES = 3
ALIKE = 4.0  # none is so many times smaller than the mean
# Seconds between two looks: at most; at least; and at least while memory rises. Between two glances at the program,
# which cost less, and lead to a look if it has grown: at least. In between, the less is left, by how fast it may go.
LONGEST_S, SHORTEST_S, RISING_S, GLANCE_S = 0.5, 0.2, 0.02, 0.05
SPEED, GLANCE_SPEED = 8 * GIB, 32 * GIB  # a second
GROWN = 16 * MIB

Reached = Literal["size", "limit"]  # the size that was named; the limit of the machine or group, or the share of it


class StopAt(NamedTuple):
    share: float | None = None  # of the limit, whoever uses it
    own: int | None = None  # bytes of the program and the processes below it

    def threshold(self, limit: int) -> float:
        """How much of a limit may be used."""
        return (self.share or 1.0) * limit


def read_stop_at(text: str) -> StopAt:
    """ "95%", "7GiB"."""
    size = from_words(text)
    if size:
        return StopAt(own=size)
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else 0.0
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise FaultlensError(
            f"--stop-before-oom={text} is neither a share of the limit nor a size of memory.",
            "Write --stop-before-oom=95% or --stop-before-oom=7GiB, or leave the value out.",
        )
    return StopAt(share=share)


class StopRule:
    """Fed with every look at the memory that is left."""

    def __init__(self, stop_at: StopAt) -> None:
        self._stop_at = stop_at
        self._by_time, self._by_step = Climb(), Climb()
        self._left = 0.0
        self._highest = 0
        self._rises = False

    @property
    def interval(self) -> float:
        return min(max(self._left / SPEED, RISING_S if self._rises else SHORTEST_S), LONGEST_S)

    @property
    def glance_interval(self) -> float:
        return min(max(self._left / GLANCE_SPEED, GLANCE_S), LONGEST_S)

    def reached(self, seconds: float, room: Room, steps: int | None, own: int = 0) -> Reached | None:
        """`own`: what the program and the processes below it hold."""
        threshold = self._stop_at.threshold(room.limit)
        size = self._stop_at.own
        self._by_time.take(seconds, room.used)
        if steps is not None:
            self._by_step.take(steps, room.used)
        self._left = min(threshold - room.used, size - own if size is not None else threshold)
        self._rises = room.used > self._highest + MIB
        self._highest = max(self._highest, room.used)
        ahead = max(self._by_time.slope * SECONDS_AHEAD, self._by_step.slope * STEPS_AHEAD)
        if size is not None and own >= size:
            return "size"
        return "limit" if room.used >= threshold or room.left < SAVE_NEEDS + ahead else None


class Climb:
    """The highest use at each of the last few moments, or in each of the last few steps. What a step took is known when
    the next has begun."""

    def __init__(self) -> None:
        self._highest = 0  # before those that are kept
        self._over: list[tuple[float, int]] = []
        self._now: tuple[float, int] | None = None

    def take(self, at: float, used: int) -> None:
        highest = max(self._now[1], used) if self._now else used
        if self._now and self._now[0] != at:
            self._over.append((self._now[0], highest))
            if len(self._over) > RISES + 1:
                self._highest = max(self._highest, self._over.pop(0)[1])
            highest = used
        self._now = at, highest

    @property
    def slope(self) -> float:
        """0 where it does not climb."""
        if len(self._over) <= RISES or self._over[0][1] < self._highest:
            return 0.0
        mean = _rise(self._over[0], self._over[-1])
        return mean if min(_rise(*pair) for pair in pairwise(self._over)) * ALIKE > max(mean, 0.0) else 0.0


def _rise(earlier: tuple[float, int], later: tuple[float, int]) -> float:
    return (later[1] - earlier[1]) / (later[0] - earlier[0])
