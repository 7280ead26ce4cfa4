from __future__ import annotations

from faultlens.diagnosis.causes.base import POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.forks import ForkedChild, stuck_child
from faultlens.diagnosis.evidence.locks import thread_in_words
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.standing import own_line, standing
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Evidence, Fix


class ForkAfterThreads(Cause):
    """
    ## What it is
    The program forked (`os.fork`, `multiprocessing` with the start method "fork") while it had several threads:
    TensorFlow's, or its own. Only the forking thread exists in the child: pools look as if they had workers, and locks
    that another thread held at that moment stay locked for ever. The child waits for threads that do not exist.

    ## How it looks
    A hang, not a crash: the parent waits for the child, the child waits in a futex below TensorFlow (or another
    library with threads), or for a lock of the program: `with lock:`, also the one inside of a logging handler.

    ## How to prove it
    The child was never started anew (same command, libraries at the same addresses), the parent has threads that
    the child lacks, and the child's thread waits inside of the library, or for a lock that none of its threads holds.

    ## How to fix it
    `multiprocessing.set_start_method("spawn")` (or "forkserver", chosen before TensorFlow is imported), or fork
    before threads are started and before the first TensorFlow call. A lock that must be used on both sides of a fork is
    made anew in the child (`os.register_at_fork`). With `tf.data` most worker processes are not needed: `map(…,
    num_parallel_calls=AUTOTUNE)`.
    """

    slug = "fork-after-threads"
    code = "FL107"
    headline = "It forked while it had threads, and the child waits for ever"

    def examine(self, case: Case) -> Finding | None:
        if not case.crash.was_running or (found := stuck_child(case.crash)) is None:
            return None
        return Finding(
            strength=_strength(found, case.crash),
            title=_title(found),
            location=location_of(own_line(found.thread)),
            evidence=_facts(found),
            fixes=_fixes(found),
        )


def _strength(found: ForkedChild, crash: Crash) -> float:
    if standing(crash).state == "advancing":
        return POSSIBLE  # the program does without it
    return PROVEN if found.lacking and (found.inside or found.holder) else STRONG + 0.03


def _title(found: ForkedChild) -> str:
    lock = found.lock
    if lock is None or found.inside:
        return f"a forked child waits for {found.waiting} that only existed in its parent"
    return f"a forked child waits for {lock.lock}, which another thread held when the process was forked"


def _facts(found: ForkedChild) -> tuple[Evidence, ...]:
    child, holder, line = found.child, found.holder, own_line(found.thread)
    inside = f" inside of {found.inside}" if found.inside else ""
    what = found.lock.lock if found.lock and not found.inside else found.waiting
    at = f" in {line.function} (line {line.line})" if line else ""
    never = ", and none of its threads holds it: nobody there will release it" if found.lock else ""
    return evidence(
        (f"process {child.pid} is a forked copy of the program: it never started another one", "/proc/PID"),
        (f"the program has {len(found.parent.threads)} threads, its child {len(child.threads)}", "/proc/PID/task"),
        (f"the child waits for {what}{inside}{at}{never}", "child's stack"),
        (f"{thread_in_words(holder, found.parent)} of the parent takes this lock", "stack") if holder else None,
    )


def _fixes(found: ForkedChild) -> tuple[Fix, ...]:
    spawn = _without_fork(found)
    if found.inside:
        library = "TensorFlow" if found.inside == "tensorflow" else found.inside
        return spawn, consider(f"fork before {library} is used", f"start the workers first, import {library} in them")
    anew = consider("make the lock anew in the child", "os.register_at_fork(after_in_child=…), or a lock of its own")
    return spawn, consider("fork before threads are started", "processes first, then threads"), anew


def _without_fork(found: ForkedChild) -> Fix:
    """What starts a fresh process, in place of what the program used to fork."""
    files = [frame.file or "" for frame in found.thread.frames if frame.kind == "python"]
    if any("/concurrent/futures/" in file for file in files):
        context = 'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
        return safe("start the workers afresh, not by a fork", context)
    by_hand = sources_of(found.parent).called("fork", "forkpty")
    if by_hand is None or any("/multiprocessing/" in file for file in files):
        return safe('multiprocessing.set_start_method("spawn")', "before the first pool or process is made")
    return consider(
        f"start a fresh process in place of {by_hand.name}() at {by_hand.place}",
        'subprocess.run([sys.executable, …]), or multiprocessing.get_context("spawn").Process(target=…)',
    )
