from __future__ import annotations

from collections.abc import Iterator

from faultlens.doctor.check import Check
from faultlens.doctor.raising import raise_rlimit
from faultlens.knowledge.needs import CPU_SECONDS, CPU_SECONDS_SEEN
from faultlens.records.crash import Limit
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.target import TargetEnvironment


class CpuTime(Check):
    """
    `ulimit -t` (RLIMIT_CPU): how many seconds a process may compute, all its threads together. The kernel ends it with
    SIGXCPU at the soft limit and with SIGKILL at the hard one, without a word.

    Measured: importing TensorFlow takes 2 s (2.15) to 3.4 s (2.12) of CPU time. With 1 s it was always killed, with 2 s
    in the import, at exit or in training, with 3 s in training; with 4 s a small model was trained. Machines differ, so
    only a limit of 1 s is an error. How long a training takes is not known beforehand: limits of a minute or more are
    left alone.
    """

    name = "cpu-time"
    looks_at = "ulimit -t, against the CPU time that importing TensorFlow takes"
    position = 73
    causes = ("cpu-time-limit",)

    def examine(self, target: TargetEnvironment) -> Examination:
        limit = target.limits.get("RLIMIT_CPU")
        return self.skipped("RLIMIT_CPU cannot be read") if limit is None else self.judge(limit)

    def judge(self, limit: Limit) -> Examination:
        shown = "not limited" if limit.soft is None else f"limited to {limit.soft:,} s, all threads together"
        details = [f"hard limit: {'unlimited' if limit.hard is None else f'{limit.hard:,} s'}"]
        return self.judged(self._findings(limit), shown, details)

    def _findings(self, limit: Limit) -> Iterator[Finding]:
        if limit.soft is None or limit.soft >= CPU_SECONDS.training:
            return
        signal = "SIGKILL" if limit.hard is not None and limit.hard <= limit.soft else "SIGXCPU"
        has = f"RLIMIT_CPU (ulimit -t) is {limit.soft} s"
        evidence = [(f"{has} of CPU time, all threads together; then {signal}", "getrlimit")]
        fixes = [raise_rlimit(limit, "t", "cpu", None)]
        if limit.soft < CPU_SECONDS.importing:
            yield self.error(f"{has}: importing TensorFlow takes more", evidence, fixes)
            return
        if limit.soft <= CPU_SECONDS_SEEN:
            told = f"importing TensorFlow and a small training took {CPU_SECONDS_SEEN} s"
            evidence.append((told, "measured on another machine"))
        yield self.warning(f"{has}: {signal} ends every training that computes longer", evidence, fixes)
