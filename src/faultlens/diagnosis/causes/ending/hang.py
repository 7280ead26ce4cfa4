from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import (
    LIKELY,
    POSSIBLE,
    PROVEN,
    STRONG,
    WEAK,
    Cause,
    Finding,
    consider,
    evidence,
    safe,
)
from faultlens.diagnosis.evidence.awaited import Awaited, awaited, is_reached
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.endless import endless_op
from faultlens.diagnosis.evidence.explained import Explained
from faultlens.diagnosis.evidence.forks import stuck_child
from faultlens.diagnosis.evidence.kin import facts_of_kin, fixes_of_kin, full_pipe, title_of_kin
from faultlens.diagnosis.evidence.limits import oom_kills
from faultlens.diagnosis.evidence.locks import Blocked, thread_in_words
from faultlens.diagnosis.evidence.messages import stragglers
from faultlens.diagnosis.evidence.pace import stalled_for
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.standing import Standing, in_idle_event_loop, own_line, standing
from faultlens.diagnosis.evidence.tracebacks import failed_thread
from faultlens.diagnosis.evidence.user_calls import called_back_by
from faultlens.inspection.frames import package_of, short_function
from faultlens.inspection.owners import owner_of
from faultlens.inspection.waiting import GIL, wait_of, waits_for
from faultlens.records.crash import Activity, Crash, Frame, Thread
from faultlens.records.diagnosis import Fix
from faultlens.text.sizes import in_words as size_in_words

MOST_TOLD = 3
_HEADERS = re.compile(r"^(?:std::|__gthread_|__gnu_cxx::)")  # compiled into the program
_PYDLL = consider(
    "release the GIL: open the library with ctypes.CDLL, PyDLL keeps it while its functions run",
    "its threads wait for the GIL, and whoever has it waits for them",
)


class Hang(Cause):
    """
    ## What it is
    The program made no progress until its time was up: a lock that is never released, a queue or a worker that
    never answers, an endless loop.

    ## How it looks
    Nothing happens, with or without CPU load. A scheduler ends it at its time limit.

    ## How to prove it
    The program is looked at several times before its limit: no step of its loop, next to no CPU time, no I/O. The
    stacks of all threads tell what each waits for. Mutexes, RLocks and the GIL know which thread has them; who has a
    plain Python lock is told from the lines of the program (`with lock:`, `lock.acquire()`), so two locks of the same
    name can be mixed up. Threads that wait for each other in a circle are a deadlock, whatever others do meanwhile. A
    thread that stands in computing code loops, or works: then [time-limit](time-limit.md) is more likely.

    ## How to fix it
    Follow the stack of the waiting thread: take locks in one order and release them on every way out (`with lock`,
    `std::lock_guard` once per function), give `get`, `join` and `wait` a time limit, close datasets and pools.
    """

    slug = "hang"
    code = "FL106"
    headline = "The program made no progress"

    def examine(self, case: Case) -> Finding | None:
        crash = case.crash
        if not crash.was_running or crash.fault is not None:
            return None
        found = standing(crash)
        if (said := endless_op(case, found)) is not None:
            return self._endless(case, found, said)
        strength = _strength(found, crash)
        if strength is None:
            return None
        return Finding(
            strength=strength,
            title=_title(found),
            location=location_of(_line(found)),
            op=_op(found, case),
            evidence=evidence(*_facts(found, crash)),
            fixes=_fixes(found),
        )

    def _endless(self, case: Case, found: Standing, said: Explained) -> Finding:
        return Finding(
            strength=STRONG,
            title=f"{case.op} does not come to an end: {said.says}",
            op=case.op,
            evidence=evidence(*case.fault_evidence, *_facts(found, case.crash)),
            fixes=(consider(said.instead, said.detail), safe("give it more time", "if it is meant to take that long")),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.crash.was_running and standing(case.crash).state in ("advancing", "moving data", "writing"):
            return "it went on until its time was up"
        return None


def _op(found: Standing, case: Case) -> str | None:
    if found.process is not case.crash:
        return None
    launched = found.thread is not None and found.thread.launched
    return (None if launched else called_back_by(found.thread)) or case.op


def _strength(found: Standing, crash: Crash) -> float | None:
    """None: it was at work."""
    if found.deadlock:
        if found.state == "advancing":  # beside others that work
            return POSSIBLE
        if any(each.same_name for each in found.deadlock):
            return LIKELY
        return STRONG if any(each.source == "source" for each in found.deadlock) else PROVEN
    if (pipe := full_pipe(found)) is not None and pipe.by_parent:
        return PROVEN
    if found.state in ("advancing", "moving data"):
        return None
    if found.state in ("computing", "writing"):
        return WEAK  # an endless loop?
    if found.state == "unclear":
        return POSSIBLE + 0.1
    if oom_kills(crash) or stuck_child(crash) or in_idle_event_loop(found.thread):
        return LIKELY  # of an event loop, a client or a timer outside may be what is waited for
    if found.state == "unknown" and (found.wait is None or found.wait.kind == "output"):
        return POSSIBLE
    return STRONG if found.thread and (found.wait is None or found.wait.kind != "time") else LIKELY


def _title(found: Standing) -> str:
    if found.deadlock:
        return f"deadlock: {'; '.join(in_words(each, found.process) for each in found.deadlock)}"
    where = _native_place(found.thread)
    blocked = _blocked(found)
    if (title := title_of_kin(found)) is not None:
        return title
    who = "it" if found.waiter is None else f"child process {found.process.pid}"
    if blocked is not None and blocked.holder is not None:
        return f"no progress: {in_words(blocked, found.process)}"
    if _keeps_gil(found):
        return f"deadlock: {who} has the GIL and waits{where} for threads that need it"
    if found.wait is None:
        return f"no progress{where}: {who} was still running"
    if in_idle_event_loop(found.thread):
        return f"no progress: the event loop of asyncio has nothing to do{'' if who == 'it' else f' in {who}'}"
    what = f"{found.wait.what} {blocked.lock}" if blocked and blocked.lock.startswith("`") else found.wait.what
    if found.wait.kind == "time":
        return f"no progress{where}: {who} only waits for time to pass"
    if (missing := stragglers(found.process)) is not None:
        return f"no progress: {who} waits for {missing}, which {'has' if ',' not in missing else 'have'} not connected"
    if (named := _awaited(found)) is not None:
        waits = "waits in" if found.wait.kind == "workers" else f"waits for {what}:"
        return f"no progress: {who} {waits} `{named.call}`{_why_for_ever(named, found)}"
    return f"no progress: {who} waits for {what}{where}"


def _facts(found: Standing, crash: Crash) -> list[tuple[str, str] | None]:
    process, activity = found.process, found.process.activity
    stalled = stalled_for(process)
    lasted = activity.limit if activity else crash.seconds
    involved = found.deadlock or found.blocked
    held = [(_holder_in_words(each, process), each.source or "stack") for each in involved[:MOST_TOLD]]
    busy = [
        (f"{thread_in_words(thread, process)} was busy{_at(thread)}, and none of these wait for it", "/proc/PID/task")
        if found.deadlock
        else (f"{thread_in_words(thread, process)} was busy{_at(thread)}", "/proc/PID/task")
        for thread in found.workers[:MOST_TOLD]
    ]
    return [
        (f"the program waits for its child process {process.pid}", "stack") if process is not crash else None,
        *held,
        None if held else _stands(found),
        ("TensorFlow's coordination service waits for tasks that have not connected", "stderr")
        if stragglers(process)
        else None,
        *_others(found),
        *facts_of_kin(found, crash),
        ("no other thread runs code of the program, and it has no children: nobody is left to end the wait", "stack")
        if _nobody_left(found)
        else None,
        (f"no step of its loop for {stalled:.0f} s", "progress") if stalled else None,
        _idle(activity) if activity and not found.workers else None,
        *busy,
        (f"it had run for {lasted:.0f} s and had not ended" if lasted else "it had not ended", "time limit"),
        (f"threads at that time: {len(process.threads)}", "/proc/PID/task"),
    ]


def _fixes(found: Standing) -> tuple[Fix, ...]:
    if fixes := fixes_of_kin(found):
        return fixes
    if found.deadlock:
        if len(found.deadlock) == 1:
            first = consider("do not take it twice", "or use threading.RLock, std::recursive_mutex")
        elif any(each.lock == "the GIL" for each in found.deadlock):
            first = _about_gil(found)
        else:
            first = consider("take these locks in the same order everywhere", "or one lock for both")
        return first, safe("give the lock a time limit", "lock.acquire(timeout=…), std::timed_mutex")
    if _keeps_gil(found):
        return _about_gil(found), safe("give the wait a time limit", "std::condition_variable::wait_for, or poll")
    if found.wait is None:
        look = consider("look at the condition that ends the loop", "the stack shows where it was")
        return look, safe("give the wait a time limit", _LIMITS)
    if in_idle_event_loop(found.thread):
        look = consider(
            "look at what the tasks wait for",
            "an Event that nobody sets, a Queue that nobody fills; asyncio.all_tasks() and print_stack() show it",
        )
        return look, safe("give the await a time limit", "asyncio.wait_for(…, timeout=…), asyncio.timeout(…)")
    if found.wait.kind == "time":
        look = consider("look at the condition for which it sleeps", "it did not come true; give up after some tries")
        return (look, safe("give it more time", "if it is meant to sleep that long"))
    if (missing := stragglers(found.process)) is not None:
        return (
            consider(f"start {missing}", "with the same cluster in TF_CONFIG and its own index, reachable from here"),
            consider("or leave it out of the cluster", "TF_CONFIG lists all that must come; one worker needs none"),
        )
    if (named := _awaited(found)) is not None:
        return _fix_of(named, found), _end_of(named)
    if (held := _held_meanwhile(found)) is not None:
        return held, safe("give the lock a time limit", "lock.acquire(timeout=…)")
    detail = "the stacks of all threads are in the report"
    if _nobody_left(found):
        detail = "a producer that has ended or was never started; an end marker that is missing"
    return consider("look at who should end the wait", detail), safe("give the wait a time limit", _LIMITS)


def _awaited(found: Standing) -> Awaited | None:
    """What the line waits for, if it is what is waited for: not a lock, nor a process."""
    if found.thread is None or found.wait is None or found.wait.kind not in ("results", "workers"):
        return None
    return awaited(found.process, own_line(found.thread))


def _why_for_ever(named: Awaited, found: Standing) -> str:
    if named.parties is not None and found.thread is not None:
        line = own_line(found.thread)
        here = [each for each in found.process.threads if (at := own_line(each)) and line and at.line == line.line]
        return f", to which {len(here)} of {named.parties} have come" if len(here) < named.parties else ""
    if (ended := failed_thread(found.process.output.stderr or "")) is not None:
        return f", and {ended[0]} ended by {ended[1]}"
    if not named.is_known or found.process.children:
        return ""
    if not named.enders:
        return f", and no line of the program {named.does}"
    if not any(is_reached(found.process, ender) for ender in named.enders):
        return f", and no thread is on the way to `{named.enders[0].call}` ({named.enders[0].place})"
    return ""


def _fix_of(named: Awaited, found: Standing) -> Fix:
    if not _why_for_ever(named, found):
        enders = ", ".join(f"{ender.call} at {ender.place}" for ender in named.enders[:MOST_TOLD])
        return consider("look at who should end the wait", enders or "the stacks of all threads are in the report")
    if named.parties is not None:
        return consider(f"start as many threads as the Barrier is made for ({named.parties})", "or make it for fewer")
    if (ended := failed_thread(found.process.output.stderr or "")) is not None:
        return consider(f"mend what ended {ended[0]}: {ended[1]}", "and tell those who wait, in a finally: or except:")
    if not named.enders:
        return consider(f"let somebody call `{named.ended_by}`", "on every way, also where an exception is raised")
    ender = named.enders[0]
    why = "it has ended, was never started, or went another way; an end marker tells those who wait that no more comes"
    return consider(f"look at why {ender.function} does not get to `{ender.call}` ({ender.place})", why)


def _end_of(named: Awaited) -> Fix:
    receiver, _, method = named.call.rpartition(".")
    if "enqueue" in method or "dequeue" in method:  # of TensorFlow's, which know no time limit
        return safe("close the queue when no more comes", f"{receiver}.close(): who waits gets OutOfRangeError")
    return safe("give the wait a time limit", f"{receiver}.{method.removesuffix(')')}timeout=…)")


def in_words(blocked: Blocked, process: Crash) -> str:
    """ "thread 7 (load) waits for `lock` (train.py:12), held by the main thread"."""
    who = thread_in_words(blocked.thread, process)
    told = f"{who} waits for {blocked.lock}"
    if blocked.waits_at and blocked.waits_at.line:
        told += f" in line {blocked.waits_at.line}"
    if blocked.holder is None:
        return told
    itself = blocked.holder.id == blocked.thread.id
    return f"{told}, which {'it holds itself' if itself else f'{thread_in_words(blocked.holder, process)} holds'}"


def _holder_in_words(blocked: Blocked, process: Crash) -> str:
    told = in_words(blocked, process)
    if blocked.holder is None:
        return f"{told}; who holds it is not known"
    told += f" since line {blocked.taken_at}" if blocked.taken_at else ""
    return f"{told}, if that is the same lock" if blocked.same_name else told


def _keeps_gil(found: Standing) -> bool:
    """Native code of the user's own waits with the GIL, while other threads want it."""
    thread = found.thread
    if thread is None or not thread.holds_gil or not _native_place(thread):
        return False
    return any(wait_of(other) == GIL for other in found.process.threads if other is not thread)


def _about_gil(found: Standing) -> Fix:
    if sources_of(found.process).called("PyDLL"):
        return _PYDLL
    return consider(
        "release the GIL before taking the other lock",
        "Py_BEGIN_ALLOW_THREADS, py::gil_scoped_release; never wait for a thread that needs it while having it",
    )


def _held_meanwhile(found: Standing) -> Fix | None:
    """Who has the lock waits as well, perhaps for the very thread that wants it."""
    blocked = _blocked(found)
    holder = blocked.holder if blocked else None
    line = own_line(holder) if holder else None
    if blocked is None or holder is None or line is None or holder is blocked.thread:
        return None
    since = f", taken in line {blocked.taken_at}," if blocked.taken_at else ""
    who = thread_in_words(holder, found.process)
    return consider(
        f"let {who} give {blocked.lock}{since} back before it waits in line {line.line}",
        "fetch first, then take the lock; or hold it only around what it protects",
    )


def _blocked(found: Standing) -> Blocked | None:
    return next((each for each in found.blocked if each.thread is found.thread), None)


def _line(found: Standing) -> Frame | None:
    if found.deadlock:
        lines = [each.waits_at for each in found.deadlock if each.waits_at]
        return next(iter(lines), None)
    if full_pipe(found) and found.waiter and found.waiter.thread:  # there it can be changed
        return own_line(found.waiter.thread)
    return own_line(found.thread) if found.thread else None


def _native_place(thread: Thread | None) -> str:
    custom = [frame for frame in thread.frames if owner_of(frame) == "custom"] if thread else []
    native = next((frame for frame in custom if not _HEADERS.search(frame.function)), next(iter(custom), None))
    return f" in {short_function(native.function)} of {package_of(native)}" if native else ""


def _stands(found: Standing) -> tuple[str, str]:
    thread = found.thread
    if in_idle_event_loop(thread):
        return "all tasks of the event loop wait, for each other or for something outside of the program", "stack"
    if found.wait:
        return f"the thread waits for {found.wait.what}", "stack"
    if thread is None or not thread.frames:
        return "its stack could not be read", "gaps"
    return f"the thread was in {short_function(thread.frames[0].function)}, not in a wait", "stack"


def _others(found: Standing) -> list[tuple[str, str]]:
    """Threads that run the user's code, and what they wait for themselves: often that is the end of the chain."""
    told = {each.thread.id for each in found.blocked} | {found.thread.id if found.thread else 0}
    others = [each for each in found.process.threads if each.id not in told and own_line(each)]
    waits = [(each, wait) for each in others if (wait := waits_for(each))]
    return [
        (f"{thread_in_words(each, found.process)} waits for {wait}{_at(each)}", "stack")
        for each, wait in waits[:MOST_TOLD]
    ]


def _at(thread: Thread) -> str:
    line = own_line(thread)
    return f" in {line.function} (line {line.line})" if line else ""


def _idle(activity: Activity) -> tuple[str, str]:
    moved = (activity.read or 0) + (activity.written or 0)
    return (
        f"in the last {activity.seconds:.1f} s it used {activity.cpu:.2f} s of CPU time, and read and wrote"
        f" {size_in_words(moved)}",
        "/proc/PID",
    )


def _nobody_left(found: Standing) -> bool:
    if found.wait is None or found.wait.kind != "results" or found.process.children:
        return False
    return not any(thread is not found.thread and own_line(thread) for thread in found.process.threads)


_LIMITS = "timeout= of get(), join(), wait(), result()"
