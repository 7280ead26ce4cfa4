from __future__ import annotations

from collections.abc import Iterator

from faultlens.doctor.check import Check, fix
from faultlens.doctor.raising import raise_rlimit
from faultlens.knowledge.needs import INTERLEAVED_FILES, OPEN_FILES, OPEN_FILES_INTERLEAVED
from faultlens.records.crash import Limit
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.target import TargetEnvironment

ENOUGH = 4096


class OpenFiles(Check):
    """
    `ulimit -n` (RLIMIT_NOFILE). TensorFlow itself opens one file at a time: importing and training work with 5
    descriptors, standard input and output among them, and fail with 4. A pipeline holds about three for each file that
    it reads at once: with `interleave(cycle_length=16)` it failed with 48 ("Too many open files", or an abort that
    speaks of `random_device`) and worked with 64. Pipelines over hundreds of files need more than this check knows of.
    """

    name = "open-files"
    looks_at = "ulimit -n, against what TensorFlow and a small pipeline open"
    position = 76
    causes = ("file-descriptor-limit",)

    def examine(self, target: TargetEnvironment) -> Examination:
        limit = target.limits.get("RLIMIT_NOFILE")
        return self.skipped("RLIMIT_NOFILE cannot be read") if limit is None else self.judge(limit)

    def judge(self, limit: Limit) -> Examination:
        shown = "any number" if limit.soft is None else f"{limit.soft:,}"
        details = [f"hard limit: {'unlimited' if limit.hard is None else f'{limit.hard:,}'}"]
        return self.judged(self._findings(limit), f"{shown} may be open; TensorFlow needs few", details)

    def _findings(self, limit: Limit) -> Iterator[Finding]:
        if limit.soft is None or limit.soft >= OPEN_FILES_INTERLEAVED:
            return
        has = f"RLIMIT_NOFILE (ulimit -n) is {limit.soft}"
        evidence = [(has, "getrlimit")]
        raised = raise_rlimit(limit, "n", "nofile", ENOUGH)
        if limit.soft < OPEN_FILES.importing:
            yield self.error(f"{has}: importing TensorFlow needs {OPEN_FILES.importing}", evidence, [raised])
        else:
            fewer = fix("read fewer files at once", "dataset.interleave(…, cycle_length=4)")
            title = f"{has}: a pipeline that reads {INTERLEAVED_FILES} files at once needs {OPEN_FILES_INTERLEAVED}"
            yield self.warning(title, evidence, [raised, fewer])
