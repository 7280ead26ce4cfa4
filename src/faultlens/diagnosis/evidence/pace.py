"""How fast the program's loop went, how far it had come, and how long it would still have taken."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.records.crash import Crash

STALLED = 10  # times the usual time of a step …
SOME_STEPS = 3  # of which a pace can be told
STALLED_S = 5.0  # … and at least so long without one: the loop stands still


class Pace(NamedTuple):
    per_second: float  # steps
    done: int | None  # of `total`
    total: int | None  # steps of all epochs
    seconds_left: float | None


def pace(crash: Crash) -> Pace | None:
    """None where no loop is known, or it has hardly begun."""
    per_second = _per_second(crash)
    progress = crash.progress
    if not per_second:
        return None
    if progress is None or not progress.steps or not progress.step or progress.phase in ("evaluate", "predict"):
        return Pace(per_second, None, None, _by_epochs(crash))
    epoch, epochs = progress.epoch or 1, progress.epochs or progress.epoch or 1
    done = (epoch - 1) * progress.steps + progress.step
    total = max(epochs * progress.steps, done)
    by_epochs = _by_epochs(crash)
    return Pace(per_second, done, total, (total - done) / per_second if by_epochs is None else by_epochs)


def stalled_for(crash: Crash) -> float | None:
    """For how many seconds a loop had made no step that used to make them quickly; None where it went on."""
    per_second = _per_second(crash)
    since = crash.progress.seconds_before if crash.progress else None
    if not per_second or since is None or (crash.progress and crash.progress.phase in ("save", "trace")):
        return None
    return since if since > max(STALLED / per_second, STALLED_S) else None


def in_pace(crash: Crash) -> bool:
    """Its next step was not yet due, judged by those before."""
    made = crash.timeline[-1].steps or 0 if crash.timeline else 0
    per_second, since = _per_second(crash), crash.progress.seconds_before if crash.progress else None
    return made >= SOME_STEPS and per_second is not None and since is not None and since <= STALLED / per_second


def _per_second(crash: Crash) -> float | None:
    known = [sample for sample in crash.timeline if sample.steps]
    moving = [sample for sample in known if sample.steps != known[-1].steps]
    if moving:
        first = known[0]
        last = known[len(moving)]  # the first sample that shows the last step
        return ((last.steps or 0) - (first.steps or 0)) / max(last.seconds - first.seconds, 1e-3)
    activity = crash.activity
    if activity is None or (activity.steps or 0) < SOME_STEPS or activity.seconds <= 0:
        return None
    return (activity.steps or 0) / activity.seconds


def _by_epochs(crash: Crash) -> float | None:
    """From whole epochs, with what is done between them."""
    progress, activity = crash.progress, crash.activity
    begun = [mark.seconds for mark in progress.marks if mark.kind == "epoch"] if progress else []
    if progress is None or activity is None or not progress.epoch or not progress.epochs or len(begun) < 2:
        return None
    each = (begun[-1] - begun[0]) / (len(begun) - 1)
    return max(each * (progress.epochs - progress.epoch + 1) - (activity.limit - begun[-1]), 0.0)
