from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, SAID, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence import crowds
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.crowds import Crowd, SelfOpening, opens_itself
from faultlens.diagnosis.evidence.leaks import evidence_of, fixes_of, growth_of
from faultlens.diagnosis.evidence.limits import (
    THREAD_STACK,
    address_space,
    failed_thread,
    most_threads,
    threads_refused,
)
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.diagnosis import Fix

FEW = 4  # so many are told of nobody who started too many: it ended before it was looked at again


class ThreadLimit(Cause):
    """
    ## What it is
    No more threads or processes could be started: the control group's `pids.max` (containers), `RLIMIT_NPROC`
    (`ulimit -u`, which counts all processes and threads of the user) or the kernel's own maximum was reached.
    TensorFlow starts several threads per core, so large machines with small limits are hit first.

    ## How it looks
    Abort on "Thread … creation via pthread_create() failed" (the number 11 in it is EAGAIN), "can't start new
    thread", "Resource temporarily unavailable". The message is the same when the address space is limited.

    ## How to prove it
    `pids.events` of the control group: its counter `max` went up while the program ran. Otherwise compare the
    number of threads with `ulimit -u`, and make sure that `ulimit -v` is unlimited.

    ## How to fix it
    Raise the limit (`--pids-limit` of the container, `ulimit -u`), or start fewer threads:
    `tf.config.threading.set_intra_op_parallelism_threads`, `set_inter_op_parallelism_threads`, `OMP_NUM_THREADS`,
    `options.threading.private_threadpool_size`. A program that keeps starting threads must end them too.
    """

    slug = "thread-limit"
    code = "FL204"
    headline = "No more threads could be started"

    def examine(self, case: Case) -> Finding | None:
        symptom = failed_thread(case)
        if symptom is None:
            return None
        refused, threads = threads_refused(case.crash), most_threads(case.crash)
        limit = case.crash.cgroup.pids_limit if case.crash.cgroup else None
        processes = case.crash.limits.get("RLIMIT_NPROC")
        growth = growth_of(case.crash, "threads")
        itself, crowd = opens_itself(case.crash), crowds.crowd(case.crash)
        return Finding(
            strength=_strength(case, refused),
            title=_title(itself, refused, limit, threads),
            location=itself.used if itself else None,
            op=case.op if itself else None,
            evidence=evidence(
                _in_words(itself) if itself else None,
                symptom,
                (f"the control group refused {refused} threads or processes; its limit is {limit}", "cgroup counter")
                if refused
                else None,
                (f"{crowd.function} runs on {crowd.threads} threads at once", "stacks") if crowd else None,
                (f"RLIMIT_NPROC is {processes.soft}", "/proc/PID/limits") if processes and processes.soft else None,
                (f"at least {threads} threads were seen", "timeline")
                if threads > FEW
                else ("the kernel refuses one only where a limit on threads, processes or memory is reached", "errno"),
                *evidence_of(growth),
            ),
            fixes=_of_itself(itself) if itself else (*fixes_of(growth), *_fixes(crowd)),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.fault is None or case.crash.output.stderr is None or threads_refused(case.crash):
            return None
        counted = ", and the control group refused none" if threads_refused(case.crash) == 0 else ""
        return f"nothing reported that a thread could not be started; {most_threads(case.crash)} ran{counted}"


def _title(itself: SelfOpening | None, refused: int | None, limit: int | None, threads: int) -> str:
    if itself:
        return f"the generator {itself.generator} opens itself, until no more threads could be started"
    if refused and limit:
        return f"no more threads could be started: the control group allows {limit}"
    return "no more threads could be started" + (f"; it had {threads} or more" if threads > FEW else "")


def _in_words(itself: SelfOpening) -> tuple[str, str]:
    made = f"{itself.made.file.rpartition('/')[2]}:{itself.made.line}"
    return (
        f"{itself.generator} iterates `{itself.dataset}`, which by then is the dataset that {made} makes of "
        f"{itself.generator}: each starts another one, with threads of its own",
        "source",
    )


def _of_itself(itself: SelfOpening) -> tuple[Fix, ...]:
    return (
        consider(
            f"give the dataset that {itself.generator} reads another name than the one made of it",
            f"a function looks `{itself.dataset}` up when it runs, not where it is written; or hand it in: "
            f"from_generator({itself.generator}, args=…)",
        ),
    )


def _fixes(crowd: Crowd | None) -> tuple[Fix, ...]:
    raised = consider("raise the limit", "pids.max or --pids-limit of the container, ulimit -u of the user")
    if crowd:
        pool = f"concurrent.futures.ThreadPoolExecutor(max_workers=n) for {crowd.function}, or join() those before"
        return consider(f"run {crowd.function} on fewer threads at a time", pool), raised
    fewer = safe(
        "start fewer threads",
        "tf.config.threading.set_inter_op_parallelism_threads(n), set_intra_op_parallelism_threads(n), "
        "OMP_NUM_THREADS=n",
    )
    return raised, fewer


def _strength(case: Case, refused: int | None) -> float:
    if refused:
        return PROVEN
    budget = address_space(case.crash)
    if budget is not None and (budget.left < 8 * THREAD_STACK or case.crash.method == "status"):
        return POSSIBLE  # a thread needs address space for its stack
    if not case.crash.limits and case.mentions(Wording.SETS_ADDRESS_SPACE):
        return POSSIBLE
    return SAID + 0.05 if case.only_words and not case.crash.limits else LIKELY + 0.1
