from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.limits import cpu_time_used_up, most_threads, oom_kills
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.records.crash import Limit


class CpuTimeLimit(Cause):
    """
    ## What it is
    `RLIMIT_CPU` (`ulimit -t`) was used up: the kernel sends SIGXCPU at the soft limit and SIGKILL at the hard
    limit. It counts the CPU seconds of all threads together, so a TensorFlow program on 16 cores uses them 16 times
    faster than the clock runs.

    ## How it looks
    "CPU time limit exceeded", or SIGKILL without a word when soft and hard limit are the same (`ulimit -t` sets
    both).

    ## How to prove it
    SIGXCPU is sent for nothing else. For SIGKILL: the hard limit is finite, the program could have used that much
    CPU time and the `oom_kill` counter did not move.

    ## How to fix it
    Raise the limit (`ulimit -t unlimited`, the limits of the login node or the batch system), or run the work where
    such limits do not hold: many clusters set them on login nodes on purpose.
    """

    slug = "cpu-time-limit"
    code = "FL105"
    headline = "The limit on CPU time was used up"

    def examine(self, case: Case) -> Finding | None:
        name, limit = ended_by(case), case.crash.limits.get("RLIMIT_CPU")
        if case.fault is not None or name not in ("SIGXCPU", "SIGKILL"):
            return None
        seconds = _limit(limit) if limit and name == "SIGXCPU" else cpu_time_used_up(case.crash)
        if name == "SIGKILL" and (not seconds or oom_kills(case.crash)):
            return None
        long_enough = (case.crash.seconds or 0) >= 0.8 * (seconds or 0)
        return Finding(
            strength=PROVEN if name == "SIGXCPU" and seconds else STRONG if long_enough else LIKELY,
            title=f"the limit of {seconds} s of CPU time was used up" if seconds else "a limit on CPU time was used up",
            evidence=evidence(
                (f"ended by {name}", "wait status"),
                (f"RLIMIT_CPU is {seconds} s", "/proc/PID/limits")
                if seconds
                else ("the kernel sends SIGXCPU only when RLIMIT_CPU is reached", "signal"),
                (f"it ran for {case.crash.seconds:.1f} s with up to {most_threads(case.crash)} threads", "timeline")
                if case.crash.seconds
                else None,
            ),
            fixes=(
                consider("raise the limit on CPU time", "ulimit -t, or RLIMIT_CPU where the program sets it itself"),
                consider(
                    "use fewer CPU seconds", "the limit counts all threads together; save checkpoints to go on later"
                ),
            ),
        )


def _limit(limit: Limit) -> int | None:
    """As it was: with every SIGXCPU the kernel raises it by a second, unless it cannot go higher."""
    raised = limit.soft is not None and limit.soft > 1 and limit.soft != limit.hard
    return limit.soft - 1 if raised and limit.soft is not None else limit.soft
