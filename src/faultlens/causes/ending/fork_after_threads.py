from __future__ import annotations

from faultlens.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.clues.case import Case, location_of
from faultlens.clues.forks import ForkedChild, stuck_child
from faultlens.clues.frames import is_own
from faultlens.diagnosis import Evidence


class ForkAfterThreads(Cause):
    """
    ## What it is
    The program forked (`os.fork`, `multiprocessing` with the start method "fork") after TensorFlow had started its
    threads. Only the forking thread exists in the child: the pools look as if they had workers, and locks that
    another thread held stay locked for ever. The child waits for threads that do not exist.

    ## How it looks
    A hang, not a crash: the parent waits for the child, the child waits in a futex below TensorFlow (or another
    library with threads). A child that only writes files or uses Python gets through; one that computes does not.

    ## How to prove it
    The child was never started anew (same command, libraries at the same addresses), the parent has threads that
    the child lacks, and the child's thread waits inside of the library.

    ## How to fix it
    `multiprocessing.set_start_method("spawn")` (or "forkserver", chosen before TensorFlow is imported), or fork
    before the first TensorFlow call. With `tf.data` most worker processes are not needed: `map(…,
    num_parallel_calls=AUTOTUNE)`.
    """

    slug = "fork-after-threads"
    code = "FL107"
    headline = "It forked after TensorFlow had started threads, and the child waits for ever"

    def examine(self, case: Case) -> Finding | None:
        if case.crash.outcome.kind != "hang" or (found := stuck_child(case.crash)) is None:
            return None
        frames = found.thread.frames
        own = next((frame for frame in frames if frame.kind == "python" and is_own(frame)), None)
        return Finding(
            strength=PROVEN if found.lacking and found.inside else STRONG,
            title=f"a forked child waits for {found.waiting} that only existed in its parent",
            location=location_of(own),
            evidence=_facts(found, case),
            fixes=(
                safe('multiprocessing.set_start_method("spawn")', "before the first pool or process is made"),
                consider("fork before TensorFlow is used", "start the workers first, import TensorFlow in them"),
            ),
        )


def _facts(found: ForkedChild, case: Case) -> tuple[Evidence, ...]:
    child = found.child
    return evidence(
        (f"process {child.pid} is a forked copy of the program: it never started another one", "/proc/PID"),
        (f"the program has {len(case.crash.threads)} threads, its child {len(child.threads)}", "/proc/PID/task"),
        (
            f"the child waits for {found.waiting}" + (f" inside of {found.inside}" if found.inside else ""),
            "child's stack",
        ),
    )
