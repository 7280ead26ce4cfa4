from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.endless import endless_op
from faultlens.diagnosis.evidence.limits import oom_kills
from faultlens.diagnosis.evidence.locks import thread_in_words
from faultlens.diagnosis.evidence.pace import Pace, pace, stalled_for
from faultlens.diagnosis.evidence.standing import Standing, own_line, standing
from faultlens.inspection.frames import short_function
from faultlens.records.crash import Activity, Crash, Frame
from faultlens.records.diagnosis import Fix
from faultlens.text.sizes import in_words

SHORTEST, ABSURD = 1e-3, 1e9  # seconds; a damaged report may say otherwise
SPARE = 1.2  # times the time that is needed, to be on the safe side


class TimeLimit(Cause):
    """
    ## What it is
    The program was at work when the time limit of `faultlens run --timeout` was up. Nothing hung: it needs more time,
    or less work.

    ## How it looks
    Like a hang from outside, because it did not end in time. But between two looks, the second at the limit, its loop
    made steps, its threads used CPU time, or it read or wrote.

    ## How to prove it
    Steps of a training loop that were made between the looks prove it. CPU time and I/O alone make it likely: an
    endless loop computes, too. Run it again with a longer limit: a program that works gets further, an endless loop is
    found on the same lines again.

    ## How to fix it
    Give it the time that it needs: where its pace is known, the report says about how long. Or make fewer steps, or
    faster ones. With `faultlens.keras.SafeCheckpoint` the next run goes on where this one was stopped.
    """

    slug = "time-limit"
    code = "FL108"
    headline = "It was still working at the time limit"

    def examine(self, case: Case) -> Finding | None:
        crash = case.crash
        if not crash.was_running or crash.fault is not None or crash.activity is None or (oom_kills(crash) or 0) > 0:
            return None
        found = standing(crash)
        if found.state in ("waiting", "unknown") or found.process.activity is None:
            return None
        return Finding(
            strength=POSSIBLE if endless_op(case, found) else _strength(found),
            title=_title(found, found.process.activity),
            location=location_of(_line(found)),
            op=case.op if found.process is crash else None,
            evidence=evidence(*_facts(found, found.process.activity, crash)),
            fixes=_fixes(found, crash),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.crash.was_running and case.crash.activity and standing(case.crash).state == "waiting":
            return "between two looks it made no step, used no CPU time to speak of, and read and wrote next to nothing"
        return None


def _strength(found: Standing) -> float:
    if found.state == "advancing":
        return PROVEN
    if found.state == "unclear":
        return POSSIBLE
    return STRONG if pace(found.process) else LIKELY


def _title(found: Standing, activity: Activity) -> str:
    begin = f"still working at the time limit of {activity.limit:,g} s"
    speed, seconds = pace(found.process), max(activity.seconds, SHORTEST)
    if found.state == "advancing":
        far = _far(found.process, speed)
        return f"{begin}: {far}" if far else f"{begin}: its loop went on"
    if found.state == "moving data":
        return f"{begin}: it read and wrote {in_words(int(_bytes(activity) / seconds))} per second"
    if found.state == "writing":
        slept = "slept" if found.wait is None or found.wait.kind == "time" else "waited again and again"
        return f"{begin}: it {slept}, and wrote in between"
    if found.state == "computing":
        return f"{begin}: it computed on {activity.cpu / seconds:.1f} CPUs"
    return f"{begin}, or stuck: some of its threads worked, others waited"


def _far(process: Crash, speed: Pace | None) -> str:
    """ "step 412 of 2,000, 6.9 steps per second"."""
    parts = []
    if speed and speed.total:
        parts.append(f"step {speed.done:,} of {speed.total:,}")
    elif process.progress and process.progress.epoch and process.progress.epochs:
        parts.append(f"epoch {process.progress.epoch:,} of {process.progress.epochs:,}")
    if speed:
        parts.append(_speed(speed.per_second))
    return ", ".join(parts)


def _speed(per_second: float) -> str:
    return f"{per_second:,.1f} steps per second" if per_second >= 1 else f"{1 / per_second:,.1f} seconds for each step"


def _facts(found: Standing, activity: Activity, crash: Crash) -> list[tuple[str, str] | None]:
    process, within = found.process, f"in the last {activity.seconds:.1f} s before the limit"
    speed, stalled = pace(process), stalled_for(process)
    steps = f"{activity.steps:,} step{'' if activity.steps == 1 else 's'}" if activity.steps else None
    busiest = found.workers[0] if found.workers else None
    return [
        (f"it waited for its child process {process.pid}, which worked", "stack") if process is not crash else None,
        (f"its loop made {steps} {within}", "progress") if steps else None,
        (f"at this pace it needs about {_time(speed.seconds_left)} more", "progress")
        if speed and speed.seconds_left
        else None,
        (f"no step for {stalled:.0f} s, although each took {1 / speed.per_second:.1g} s before", "progress")
        if stalled and speed
        else None,
        (f"it used {activity.cpu:.1f} s of CPU time {within}", "/proc/PID/task") if found.workers else None,
        (f"most of it on {thread_in_words(busiest, process)}{_at(found)}", "stack")
        if busiest and len(process.threads) > 1
        else None,
        (f"it read {in_words(activity.read or 0)} and wrote {in_words(activity.written or 0)} {within}", "/proc/PID/io")
        if _bytes(activity)
        else None,
        *(
            (f"{thread_in_words(each.thread, process)} waited for {each.lock}, and used no CPU time", "stack")
            for each in found.blocked[:3]
        ),
        (f"faultlens stopped it after {activity.limit:g} s", "--timeout"),
    ]


def _at(found: Standing) -> str:
    thread = found.workers[0]
    line = own_line(thread)
    if line is not None:
        return f", in {line.function} (line {line.line})"
    return f", in {short_function(thread.frames[0].function)}" if thread.frames else ""


def _line(found: Standing) -> Frame | None:
    """Where it worked; where a library does, the line that asked for it."""
    lines = [own_line(thread) for thread in (found.thread, *found.workers) if thread is not None]
    return next((line for line in lines if line is not None), None)


def _fixes(found: Standing, crash: Crash) -> tuple[Fix, ...]:
    speed = pace(found.process)
    limit = crash.activity.limit if crash.activity else 0.0
    left = speed.seconds_left if speed else None
    if left and limit + left < ABSURD:
        detail = (
            f"--timeout {_rounded((limit + left) * SPARE)}: at this pace it needs about {_time(limit + left)} in all"
        )
    else:
        detail = f"such as --timeout {_rounded(min(limit, ABSURD) * 3)}; nothing tells how long it needs"
    fixes = [safe("give it more time", detail)]
    if found.state == "writing":
        fixes.append(consider("make sure that what it writes is progress", "and not that it still waits for something"))
    if found.state in ("computing", "unclear") and not left:
        fixes.append(
            consider(
                "make sure that it is not an endless loop", "run it again: it should get to other lines than these"
            )
        )
    if speed:
        fixes.append(consider("make it go on where it stopped", "faultlens.keras.SafeCheckpoint saves and resumes"))
        fixes.append(consider("do less, or do it faster", "fewer epochs or steps, larger batches, a GPU"))
    return tuple(fixes)


def _bytes(activity: Activity) -> int:
    return (activity.read or 0) + (activity.written or 0)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _rounded(seconds: float) -> int:
    """Two digits are enough."""
    unit = int(10 ** max(len(str(int(seconds))) - 2, 0))
    return (int(seconds) // unit + 1) * unit
