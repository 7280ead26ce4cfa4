from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.doctor.raising import raise_group, raise_rlimit
from faultlens.knowledge import needs
from faultlens.records.crash import Limit
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.allowance import Allowance
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.sizes import KIB, MIB, in_words

DEFAULT_STACK = 2 * MIB  # of a thread where RLIMIT_STACK is unlimited (glibc, x86-64)
ENOUGH_STACK = 8 * MIB  # what systems usually give
ENOUGH = 1000  # threads beyond the need, for what else the program starts


class Left(NamedTuple):
    free: int
    named: str
    source: str
    fix: Fix


class ThreadCount(Check):
    """
    How many threads may still be started (`pids.max` of the control groups, `ulimit -u`, which does not bind root, the
    kernel's own maximum), against those that TensorFlow starts; and how large their stacks are (`ulimit -s`).

    TensorFlow starts a thread for each CPU in each of its pools. Measured, also with an invented number of CPUs:
    2 for each CPU and one more from the first op on, 3 for each CPU and 6 more while a model is trained for two epochs
    (TensorFlow 2.16 and later; 1 and 4 before), and OpenBLAS one for each CPU up to 64 when NumPy is imported: 19
    threads on 2 CPUs, 391 on 64. With 18 allowed the program aborts, with 19 it lives; a single epoch lives with 17.
    OpenBLAS alone goes on without its threads.
    The main thread dies by SIGSEGV, without a word, with a stack of 84 KiB, and lives with 100 KiB.
    """

    name = "threads"
    looks_at = "pids.max, ulimit -u, ulimit -s and kernel limits, against the threads that TensorFlow starts"
    position = 74
    causes = ("thread-limit", "thread-stack-too-small")

    def examine(self, target: TargetEnvironment) -> Examination:
        return self.judge(target.limits, target.allowance, expected_threads(target))

    def judge(self, limits: Mapping[str, Limit], allowance: Allowance, threads: needs.Threads) -> Examination:
        places = sorted(_places(limits, allowance, threads))
        findings = [*self._too_few(places[:1], allowance, threads), *self._small_stack(limits.get("RLIMIT_STACK"))]
        left = f"{places[0].free:,} may be started" if places else "not limited"
        cpus = f"{allowance.cpus} CPU{'s' if allowance.cpus != 1 else ''}"
        summary = f"{left}; training starts {threads.to_train} with {cpus}"
        return self.judged(findings, summary, _details(limits, places, threads))

    def _too_few(self, places: Iterable[Left], allowance: Allowance, threads: needs.Threads) -> Iterator[Finding]:
        for left in places:
            evidence = [
                (f"{left.free} more threads or processes may be started", left.source),
                (f"TensorFlow starts its threads for {allowance.cpus} CPUs", "sched_getaffinity"),
            ]
            few = f"{left.named} leaves room for {left.free} threads"
            if left.free < threads.to_compute:
                title = f"{few}: the first op of TensorFlow needs {threads.to_compute}"
                yield self.error(title, evidence, (left.fix, _FEWER), causes=("thread-limit",))
            elif left.free < threads.to_train:
                title = f"{few}: training for two epochs needs {threads.to_train}"
                yield self.warning(title, evidence, (left.fix, _FEWER), causes=("thread-limit",))

    def _small_stack(self, stack: Limit | None) -> Iterator[Finding]:
        if stack is None or stack.soft is None or stack.soft > needs.STACK.training:
            return
        yield self.error(
            f"RLIMIT_STACK (ulimit -s) is {in_words(stack.soft)}: importing TensorFlow needs more than "
            f"{in_words(needs.STACK.training)}",
            [(f"the main thread and new threads get a stack of {in_words(stack.soft)}", "getrlimit")],
            [raise_rlimit(stack, "s", "stack", ENOUGH_STACK, KIB)],
            causes=("thread-stack-too-small",),
        )


def expected_threads(target: TargetEnvironment) -> needs.Threads:
    return needs.threads(target.allowance.cpus, target.variables, minor_version(target))


def minor_version(target: TargetEnvironment) -> needs.Version | None:
    """(2, 21), of the TensorFlow that is installed."""
    found = re.match(r"(\d+)\.(\d+)", target.tensorflow.version if target.tensorflow else "")
    return (int(found[1]), int(found[2])) if found else None


_FEWER = fix(
    "start fewer threads",
    "OPENBLAS_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 taskset -c 0 python …",
    "TensorFlow's pools have a thread for each CPU that it may use",
)


def _places(limits: Mapping[str, Limit], allowance: Allowance, threads: needs.Threads) -> Iterator[Left]:
    enough = threads.to_train + ENOUGH
    if (room := allowance.tasks) is not None:
        named = f"the control group (pids.max {room.limit})"
        yield Left(max(room.left, 0), named, room.where, raise_group(room, room.used + enough, "--pids-limit=-1"))
    user = limits.get("RLIMIT_NPROC")
    if user is not None and user.soft is not None and allowance.user_tasks is not None:
        raised = raise_rlimit(user, "u", "nproc", allowance.user_tasks + enough)
        named = f"RLIMIT_NPROC (ulimit -u {user.soft})"
        yield Left(max(user.soft - allowance.user_tasks, 0), named, "getrlimit and /proc/*/status", raised)
    if (room := allowance.all_tasks) is not None:
        name = room.where.rpartition("/")[2]
        raised = fix("raise the kernel's maximum", f"sudo sysctl kernel.{name}={room.used + enough}", safe=False)
        yield Left(max(room.left, 0), f"the kernel ({name} {room.limit})", room.where, raised)


def _details(limits: Mapping[str, Limit], places: Iterable[Left], threads: needs.Threads) -> Iterator[str]:
    for left in places:
        yield f"{left.named} leaves room for {left.free:,} threads ({left.source})"
    yield (
        f"OpenBLAS in NumPy starts {threads.blas}, TensorFlow {threads.compute} for its first op "
        f"and {threads.training} more in training"
    )
    if (stack := limits.get("RLIMIT_STACK")) is not None:
        yield f"stack of a thread: {in_words(DEFAULT_STACK if stack.soft is None else stack.soft)} (RLIMIT_STACK)"
