"""The record of a growth: how fast, since when, and how much is left until the limit."""

from __future__ import annotations

import os

from msgspec.structs import replace

from faultlens.records.crash import Growth, Holder, Sample
from faultlens.supervise.growth import Trend, value_of
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Room
from faultlens.system.memory_limit import tightest_room


def record(trend: Trend, timeline: Timeline, holders: tuple[Holder, ...]) -> Growth:
    room = _room(trend, timeline)
    left = max(room.left, 0) if room is not None else None
    return Growth(
        what=trend.what,
        seconds=timeline.samples[-1].seconds,
        before=trend.first.value,
        after=trend.last.value,
        per_second=round(trend.per_second, 3),
        per_step=round(trend.slope, 3) if trend.by_steps else None,
        since=int(trend.first.at) if trend.by_steps else None,
        steps=trend.steps,
        limit=room.limit if room is not None else None,
        steps_left=int(left / trend.slope) if left is not None and trend.by_steps else None,
        seconds_left=round(left / trend.per_second, 1) if left is not None and trend.per_second > 0 else None,
        holders=holders,
    )


def _room(trend: Trend, timeline: Timeline) -> Room | None:
    if trend.what == "memory":
        return tightest_room(timeline.cgroup)
    if trend.what == "threads":
        return timeline.cgroup.task_room() if timeline.cgroup else None
    if trend.what == "open files":
        limit = timeline.limits.get("RLIMIT_NOFILE")
        return Room(limit=limit.soft, used=trend.last.value, where="RLIMIT_NOFILE") if limit and limit.soft else None
    if trend.what == "shared memory":
        state = os.statvfs("/dev/shm")
        size, free = state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
        return Room(limit=size, used=size - free, where="/dev/shm")
    return None


def until(growth: Growth, last: Sample | None) -> Growth:
    """As it was at the end."""
    value = value_of(growth.what, last) if last is not None else None
    if last is None or value is None:
        return growth
    since, gone = growth.since, max(value - growth.after, 0)
    steps_left, seconds_left = growth.steps_left, growth.seconds_left
    if steps_left is not None and growth.per_step:
        steps_left = max(steps_left - int(gone / growth.per_step), 0)
    if seconds_left is not None and growth.per_second:
        seconds_left = max(round(seconds_left - gone / growth.per_second, 1), 0.0)
    steps = last.steps - since if last.steps is not None and since is not None else growth.steps
    return replace(growth, after=value, steps=steps, steps_left=steps_left, seconds_left=seconds_left)
