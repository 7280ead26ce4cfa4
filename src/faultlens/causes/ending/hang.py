from __future__ import annotations

from faultlens.causes.base import LIKELY, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.clues.case import Case, location_of
from faultlens.clues.frames import is_own, main_thread, package_of, short_function
from faultlens.clues.limits import oom_kills
from faultlens.clues.owners import owner_of
from faultlens.clues.waiting import waits_for
from faultlens.crash import Crash, Frame, Thread

_INNERMOST = 15  # what stands between a wait and the call of the standard library


class Hang(Cause):
    """
    ## What it is
    The program made no progress until its time was up: a lock that is never released, a queue or a worker that
    never answers, an endless loop.

    ## How it looks
    Nothing happens, with or without CPU load. A scheduler ends it at its time limit.

    ## How to prove it
    The stacks of all threads at the end of the time. A thread in `futex`, `pthread_mutex_lock` or
    `Notification::Wait` waits for another one: look for the thread that should wake it, and whether it exists. A
    thread that stands in computing code loops.

    ## How to fix it
    Follow the stack of the waiting thread: take locks in one order and release them on every way out (`with lock`,
    `std::lock_guard` once per function), give `get`, `join` and `wait` a time limit, close datasets and pools.
    """

    slug = "hang"
    code = "FL106"
    headline = "The program made no progress"

    def examine(self, case: Case) -> Finding | None:
        if case.crash.outcome.kind != "hang":
            return None
        thread = _thread_to_blame(case.crash)
        waiting = waits_for(thread) if thread else None
        native = next((frame for frame in thread.frames if owner_of(frame) == "custom"), None) if thread else None
        where = f" in {short_function(native.function)} of {package_of(native)}" if native else ""
        lasted = f"it had run for {case.crash.seconds:.0f} s" if case.crash.seconds else "its time was up"
        return Finding(
            strength=STRONG if thread and not oom_kills(case.crash) else LIKELY,
            title=f"no progress: it waits for {waiting}{where}"
            if waiting
            else f"no progress{where}: it was still running",
            location=location_of(_own_line(thread)) if thread else None,
            op=case.op,
            evidence=evidence(
                (f"{lasted} and had not ended", "time limit"),
                (f"the thread waits for {waiting}", "stack") if waiting else _running(thread),
                (f"threads at that time: {len(case.crash.threads)}", "/proc/PID/task"),
            ),
            fixes=(
                consider("look at who should end the wait", "the stacks of all threads are in the report")
                if waiting
                else consider("look at the condition that ends the loop", "the stack shows where it was"),
                safe("give the wait a time limit", "timeout= of get(), join(), wait(), result()"),
            ),
        )


def _thread_to_blame(crash: Crash) -> Thread | None:
    """The thread that launched the work; where it only joins others, one of those that run the user's code."""
    thread = crash.launching_thread or main_thread(crash)
    if thread is None or not any(_is_join(frame) for frame in thread.frames[:_INNERMOST]):
        return thread
    return next((other for other in crash.threads if other is not thread and _own_line(other)), thread)


def _own_line(thread: Thread) -> Frame | None:
    return next((frame for frame in thread.frames if frame.kind == "python" and is_own(frame)), None)


def _is_join(frame: Frame) -> bool:
    return frame.kind == "python" and frame.function == "join" and (frame.file or "").endswith("/threading.py")


def _running(thread: Thread | None) -> tuple[str, str]:
    if thread is None or not thread.frames:
        return "its stack could not be read", "gaps"
    return f"the thread was in {short_function(thread.frames[0].function)}, not in a wait", "stack"
