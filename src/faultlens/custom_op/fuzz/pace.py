"""How long may an input take, how many are tried at once, and which are not worth trying? Keeps a campaign in its time.

An op that hangs, or dies of most inputs, must not use up the time on showing the same again."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from faultlens.custom_op.fuzz.deaths import Death

MOST_AT_ONCE, LEAST_AT_ONCE = 48, 4
SLOW_BATCH = 1.0  # seconds
AFTER_A_HANG, AFTER_SOME = 1.5, 0.7  # seconds that an input may take then
SOME_HANGS = 3
SHARE = 0.25  # of the time, for the first that hangs
LEAST = 2.0  # seconds for one input
DEADLY, ENDLESS = 3, 1  # inputs of the same ranks that die, none accepted: no more of them
MOST_DEATHS = 60


class Pace:
    def __init__(self, seconds: float, limit: float) -> None:
        self._start = time.monotonic()
        self.deadline = self._start + seconds
        self._limit, self._seconds = limit, seconds
        self.at_once = MOST_AT_ONCE
        self.deaths = self.hangs = 0
        self._died: Counter[Any] = Counter()  # by the ranks of the inputs
        self._hung: Counter[Any] = Counter()
        self._fine: set[Any] = set()

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.deadline or self.deaths >= MOST_DEATHS

    def share_used(self) -> float:
        return (time.monotonic() - self._start) / self._seconds

    def patience(self, calls: float = 1.0) -> float:
        """Seconds for one input; `calls`: for a form that takes so many times as long."""
        if self.hangs:
            known = AFTER_A_HANG if self.hangs < SOME_HANGS else AFTER_SOME
            return min(self._limit, calls * known)
        left = max(self.deadline - time.monotonic(), LEAST)
        return min(calls * self._limit, max(SHARE * self._seconds * calls, LEAST), left * calls)

    def took(self, seconds: float) -> None:
        """A batch: slow ones are made smaller, because only between them time is looked at."""
        half, double = max(self.at_once // 2, LEAST_AT_ONCE), min(self.at_once * 2, MOST_AT_ONCE)
        self.at_once = half if seconds > SLOW_BATCH else double

    def seen(self, ranks: Any, death: Death | None, accepted: bool) -> None:
        if accepted:
            self._fine.add(ranks)
        if death is not None:
            self.deaths += 1
            self._died[ranks] += 1
            self.hangs += death.kind == "endless"
            self._hung[ranks] += death.kind == "endless"

    def is_hopeless(self, ranks: Any) -> bool:
        return ranks not in self._fine and (self._died[ranks] >= DEADLY or self._hung[ranks] >= ENDLESS)

    @property
    def stopped(self) -> str:
        """Why there were not more, if not for the time that was given."""
        after = f"stopped after {time.monotonic() - self._start:.0f} s"
        if self.deaths >= MOST_DEATHS:
            return f"{after}: it died of {self.deaths} of them"
        return f"{self.hangs} of them hang, which took most of the time" if self.hangs > SOME_HANGS else ""
