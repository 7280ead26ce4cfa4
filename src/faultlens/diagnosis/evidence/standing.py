"""What a program was doing when its time was up: did it advance, compute, move or write data, or wait for something?

Two looks decide, the second at the time limit: steps of its loop, CPU time and I/O in between. What the thread that
leads the program waits for says whose work counts: a busy thread is no progress for those that wait for each other."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from faultlens.diagnosis.evidence.locks import Blocked, blocked_threads, deadlock
from faultlens.diagnosis.evidence.pace import SOME_STEPS, in_pace, stalled_for
from faultlens.diagnosis.evidence.user_calls import called_back_by
from faultlens.inspection.frames import is_own, main_thread
from faultlens.inspection.waiting import Wait, is_helper, is_idle, wait_of
from faultlens.records.crash import Crash, Frame, Thread

BUSY = 0.05  # of one CPU; timers and pools that look for work take less
MOVES = 4096  # bytes a second; who only says that he still waits writes less
RESTING = 0.35  # of the time between the looks
SAME = 3  # lines of output; who writes the same again only says that he still waits
_CLOCK = re.compile(
    r"\d{4}-\d\d-\d\d[T ]?|\d+:\d\d(?::\d\d)?(?:[.,]\d+)?"
    r"|\b\d+(?:\.\d+)? ?(?:s|secs?|seconds|min|minutes|h|hours)\b"
)
_LOOP = 3  # frames of Python between the wait and the event loop
_INNERMOST = 15  # what stands between a wait and the call of the standard library

# "unclear": somebody works, but whether the program waits for that is not known. "unknown": it was looked at only once.
# "writing": it sleeps or waits, and in between it writes a little, again and again something else.
State = Literal["advancing", "computing", "moving data", "writing", "unclear", "waiting", "unknown"]
AT_WORK: tuple[State, ...] = ("advancing", "computing", "moving data", "writing")


class Standing(NamedTuple):
    state: State
    process: Crash  # the one that is spoken of: the program, or the child that it waits for
    thread: Thread | None  # that leads it …
    wait: Wait | None = None  # … and what it waits for
    workers: tuple[Thread, ...] = ()  # threads that used CPU time, the busiest first
    blocked: tuple[Blocked, ...] = ()
    deadlock: tuple[Blocked, ...] = ()
    waiter: Standing | None = None  # the program, where another process is spoken of


def standing(crash: Crash) -> Standing:
    thread = thread_to_blame(crash)
    found = Standing(
        "unknown",
        crash,
        thread,
        wait_of(thread) if thread else None,
        _busy(crash),
        tuple(blocked_threads(crash)),
        tuple(deadlock(crash)),
    )
    if crash.activity is None:
        return found
    if _rests(crash, found):
        found = found._replace(state="waiting", workers=())
        return _awaited_child(crash, found) or found
    if (crash.activity.steps or 0) >= SOME_STEPS or (crash.activity.steps and in_pace(crash)):
        return found._replace(state="advancing")
    found = found._replace(state=_state(crash, found))
    return found if found.state in AT_WORK else _awaited_child(crash, found) or found


def thread_to_blame(crash: Crash) -> Thread | None:
    """The thread that launched the work; where it only joins others, one of those that run the user's code, and of
    these one that waits; where it waits for TensorFlow, the code of the user's that TensorFlow waits for."""
    thread = crash.launching_thread or main_thread(crash)
    if (called := _called_back(crash, thread)) is not None:
        return called
    if thread is None or not any(_is_join(frame) for frame in thread.frames[:_INNERMOST]):
        return thread
    others = [other for other in crash.threads if other is not thread and own_line(other)]
    if not others:  # what feeds a queue has no line of the user's
        others = [other for other in crash.threads if (wait := wait_of(other)) and wait.kind == "output"]
    return next((other for other in others if other not in _busy(crash)), next(iter(others), thread))


def _called_back(crash: Crash, thread: Thread | None) -> Thread | None:
    wait = wait_of(thread) if thread else None
    if wait is None or wait.kind != "workers":
        return None
    others = [other for other in crash.threads if other is not thread and called_back_by(other)]
    waiting = [(other, wait) for other in others if (wait := wait_of(other))]
    if len(waiting) < len(others) or _busy(crash):
        return None  # some of it goes on
    return next((other for other, wait in waiting if wait.kind in ("results", "lock")), None)


def in_idle_event_loop(thread: Thread | None) -> bool:
    """It stands in asyncio's event loop, which looks for something to do: none of its tasks can go on."""
    python = [frame for frame in (thread.frames if thread else ()) if frame.kind == "python"][:_LOOP]
    files = [frame.file or "" for frame in python]
    loops = [at for at, file in enumerate(files) if file.endswith("/asyncio/base_events.py")]
    return bool(loops) and all(file.endswith("/selectors.py") for file in files[: loops[0]])


def own_line(thread: Thread) -> Frame | None:
    """The innermost. What lies below the start of a forked child belongs to its parent."""
    for frame in thread.frames:
        if frame.kind == "python" and is_own(frame):
            return frame
        if frame.function == "_bootstrap" and (frame.file or "").endswith("/multiprocessing/process.py"):
            return None
    return None


def _rests(crash: Crash, found: Standing) -> bool:
    """It did something between the looks, but then no more: it waits for others, and its next step is overdue."""
    activity, wait = crash.activity, found.wait
    if activity is None or wait is None or wait.kind in ("time", "input") or in_pace(crash):
        return False
    if _writes_between_waits(crash, found):
        return False
    return (activity.idle or 0.0) >= RESTING * activity.seconds


def _state(crash: Crash, found: Standing) -> State:
    thread, wait, busy = found.thread, found.wait, found.workers
    if found.deadlock:
        return "waiting"
    if thread in busy:
        return "unclear" if stalled_for(crash) else "computing"
    if wait is not None and wait.kind == "lock":
        return _of_holder(crash, found)
    if _moves(crash):
        return "moving data"
    if busy and any(each.thread is not thread for each in found.blocked):
        return "unclear"  # some work, others wait for locks
    if not busy and _writes_between_sleeps(crash, found):
        return "writing"
    if not busy and _writes_between_waits(crash, found):
        return "writing" if _last_lines(crash) else "unclear"  # what it writes, nobody has seen
    if busy and (wait is None or wait.kind in ("workers", "results", "thread")):
        return "computing"
    return "unclear" if busy else "waiting"


def _of_holder(crash: Crash, found: Standing) -> State:
    """Of a lock: what its holder does counts, or the holder of the lock that he waits for."""
    holders = {each.thread.id: each.holder for each in found.blocked}
    at = found.thread
    while at is not None and at.id in holders:  # there is no circle: that is a deadlock
        at = holders[at.id]
    if at is None:
        return "unclear" if found.workers else "waiting"
    if at in found.workers:
        return "computing"
    return "moving data" if at.moved and at.moved >= MOVES * _seconds(crash) else "waiting"


def _awaited_child(crash: Crash, found: Standing) -> Standing | None:
    """Of a program that waits for its children, one that works, else the one that keeps it waiting; of a shell and the
    like, its only one."""
    if found.deadlock or found.wait is None or found.wait.kind not in ("process", "results", "input", "thread"):
        return None
    children = [standing(child) for child in crash.children if child.activity]
    by_state = {child.state: child for child in reversed(children)}
    working = next((by_state[state] for state in AT_WORK if state in by_state), None)
    is_program = found.thread is not None and own_line(found.thread) is not None
    only = children[0] if len(children) == 1 and not is_program else None
    chosen = working or only or _keeps_waiting(found, children)
    return chosen._replace(waiter=found) if chosen else None


def _keeps_waiting(found: Standing, children: list[Standing]) -> Standing | None:
    """Of children that do not work either: whoever is waited for by number, or stands in a lock or a full pipe. None
    where that is not clear."""
    call = found.thread.call if found.thread else None
    awaited = call.processes if call and call.name == "wait" else ()
    waiting = [child for child in children if child.thread and child.wait and not is_helper(child.thread)]
    stuck = [child for child in waiting if child.wait and child.wait.kind in ("lock", "output")]
    named = [child for child in waiting if child.process.pid in awaited]
    if named and named[0].wait and named[0].wait.kind != "process":
        return named[0]
    if stuck:
        return stuck[0]
    at_task = [child for child in waiting if child.thread and not is_idle(child.thread)]
    is_awaited = found.wait is not None and found.wait.kind in ("process", "results")
    return at_task[0] if is_awaited and len(at_task) == 1 else None


def _busy(crash: Crash) -> tuple[Thread, ...]:
    busy = [thread for thread in crash.threads if crash.activity and (thread.cpu or 0.0) >= BUSY * _seconds(crash)]
    return tuple(sorted(busy, key=lambda thread: -(thread.cpu or 0.0)))


def _moves(crash: Crash) -> bool:
    activity = crash.activity
    return activity is not None and (activity.read or 0) + (activity.written or 0) >= MOVES * _seconds(crash)


def _writes_between_sleeps(crash: Crash, found: Standing) -> bool:
    thread, written = found.thread, crash.activity.written if crash.activity else None
    sleeps = found.wait is not None and found.wait.kind == "time"
    if not (sleeps or in_idle_event_loop(thread)) or thread is None or not written or thread.moved == 0:
        return False  # one that wrote is another thread, if its own number is known
    return not _repeats_itself(crash)


def _writes_between_waits(crash: Crash, found: Standing) -> bool:
    """It waits for others, but never for long: `while not done.wait(1)`. In between it writes, to the end."""
    thread, activity = found.thread, crash.activity
    if found.wait is None or found.wait.kind != "results" or thread is None or activity is None:
        return False
    lately = activity.quiet is not None and activity.quiet < RESTING * activity.seconds
    return lately and bool(thread.moved) and not _repeats_itself(crash)


def _repeats_itself(crash: Crash) -> bool:
    """Who writes the same again, but for the time, only says that he still waits."""
    told = ([_CLOCK.sub("", line).strip() for line in lines] for lines in _last_lines(crash))
    return any(len(lines) == SAME and len(set(lines)) == 1 for lines in told)


def _last_lines(crash: Crash) -> list[list[str]]:
    texts = (crash.output.stdout or "", crash.output.stderr or "")
    return [lines for text in texts if (lines := text.splitlines()[-SAME:])]


def _seconds(crash: Crash) -> float:
    return crash.activity.seconds if crash.activity else 0.0


def _is_join(frame: Frame) -> bool:
    return frame.kind == "python" and frame.function == "join" and (frame.file or "").endswith("/threading.py")
