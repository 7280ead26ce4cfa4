from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.limits import oom_kills
from faultlens.diagnosis.evidence.memory_death import MemoryDeath, last_line, memory_death
from faultlens.diagnosis.evidence.saving import left_behind, save_with_faultlens
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.diagnosis.evidence.stopping import request_in_words
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words

_KILLED = re.compile(r"Killed process (?P<pid>\d+) \((?P<name>[^)]*)\).*?anon-rss:(?P<kilobytes>\d+)kB")
# What a parent says when a worker of its pool has vanished.
_WORKER_GONE = re.compile(
    r"BrokenProcessPool|terminated abruptly|SIGKILL|exitcode[ =:-]+9|WorkerLost|died unexpectedly"
)
_OF_GROUP = re.compile(r"CONSTRAINT_MEMCG\b.*?\boom_memcg=([^,\s]+)")


class OutOfMemoryKill(Cause):
    """
    ## What it is
    The program used more memory than its control group (container, job) or the machine has, and the kernel killed
    it with SIGKILL. A process gets no chance to say anything: there is no message, no traceback, no core file.

    ## How it looks
    "Killed", exit status 137 in a shell, `OOMKilled` in Kubernetes. It is never a segmentation fault. If a worker
    of a pool is killed, the parent reports a broken pool, or waits for it for ever.

    ## How to prove it
    The `oom_kill` counter of the control group went up while the program ran, or the kernel log has "Killed
    process" with its number. Memory near the limit alone proves nothing: page cache counts too.

    The timeline tells which kind it was: a **leak** (memory grew with every step, and the report names what held it),
    **one sudden jump** (a save, an evaluation, a buffer that filled), **too much from the beginning** (killed within
    the first steps), a **recursion** that never ends, or **others** in the same control group. The line is the one at
    which the program stood when memory was nearly used up.

    ## How to fix it
    Keep fewer tensors alive (lists of results, `hist.append(loss)` instead of `float(loss)`), use smaller batches,
    shuffle and prefetch buffers; save as SavedModel or checkpoint instead of `.keras`/`.h5`, which need twice the
    largest variable; or raise the limit.
    """

    slug = "out-of-memory-kill"
    code = "FL201"
    headline = "The kernel killed it because memory ran out"

    def examine(self, case: Case) -> Finding | None:
        crash = case.crash
        kills, line = oom_kills(crash) or 0, _log_line(crash)
        if case.fault is not None or crash.outcome.kind == "ok" or not (kills > 0 or line):
            return None
        itself = ended_by(case) == "SIGKILL"
        if not itself and not _lost_a_worker(case):
            return None
        limit = crash.cgroup.memory_limit if crash.cgroup else None
        group = _group(crash) if not limit else None
        room = f"the limit of {in_words(limit)}" if limit else "the memory of the machine"
        room = f"the memory limit of its control group {group}" if group else room
        known = crash.outcome.kind == "signal" and group is None  # of a group made later, nothing else was recorded
        death = memory_death(crash) if known else MemoryDeath("unknown", "")
        return Finding(
            strength=PROVEN if itself else STRONG,
            title=f"the kernel killed {'it' if itself else 'a process of it'}: {room} was used up"
            + (f"; {death.title}" if death.title else ""),
            location=location_of(last_line(crash)),
            evidence=evidence(
                _death(case),
                (f"the oom_kill counter of the control group went up by {kills}", "cgroup counter") if kills else None,
                (line, "kernel log") if line else None,
                *death.evidence,
                (request_in_words(crash.stop_request), "--stop-before-oom") if crash.stop_request else None,
                *left_behind(case),
            ),
            fixes=(
                *save_with_faultlens(case, "it needs no second copy of the weights in memory; "),
                *(death.fixes or (consider("use less memory", _ADVICE),)),
                consider("raise the memory limit of the job or container")
                if limit or group
                else consider("use a larger machine"),
                *_other_format(case, death),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        kills = oom_kills(case.crash)
        if case.fault is not None:
            counted = ", and the oom_kill counter did not move" if kills == 0 else ""
            return f"the kernel kills for memory with SIGKILL, this was {case.fault.signal}{counted}"
        if case.crash.outcome.signal == "SIGKILL" and kills == 0:
            return "the oom_kill counter of the control group did not move and the kernel log names no kill"
        return None


def _log_line(crash: Crash) -> str | None:
    """The kernel's own words about the program or one of its children."""
    pids = {str(pid) for pid in (crash.pid, *(child.pid for child in crash.children)) if pid}
    found = [match for line in crash.kernel_log if (match := _KILLED.search(line)) and match["pid"] in pids]
    if not found:
        return None
    size = in_words(int(found[-1]["kilobytes"]) << 10)
    return f"out of memory: killed process {found[-1]['pid']} ({found[-1]['name']}) with {size} of its own memory"


def _group(crash: Crash) -> str | None:
    """The control group whose limit the kernel killed it for, by the kernel's own words."""
    found = [match[1] for line in crash.kernel_log if (match := _OF_GROUP.search(line))]
    return one_line(found[-1], 80) if found else None


def _death(case: Case) -> tuple[str, str]:
    outcome = case.crash.outcome
    if outcome.kind == "signal":
        return f"ended by {outcome.signal}", "wait status"
    if outcome.kind == "exit":
        return f"exit code {outcome.exit_code}: a process that it ran was killed by SIGKILL", "wait status"
    return "a worker process vanished" + (
        ", and the program waited for it" if case.crash.was_running else ""
    ), "outcome"


def _lost_a_worker(case: Case) -> bool:
    if case.crash.was_running:
        return True
    text = f"{case.exception.type} {case.exception.details}" if case.exception else ""
    return case.crash.outcome.exit_code == 137 or bool(_WORKER_GONE.search(text))


def _other_format(case: Case, death: MemoryDeath) -> tuple[Fix, ...]:
    if death.kind in ("unknown", "growth") and case.mentions(Wording.SAVES_MODEL):
        return (safe("save with a format that needs little memory", "SavedModel or tf.train.Checkpoint"),)
    return ()


_ADVICE = "smaller batches, shuffle and prefetch buffers; keep numbers instead of tensors"
