"""Which kind of death it was when memory ran out: a leak, a sudden jump, too much from the beginning, or others.

- leak: memory grew with every step (supervise/growth.py), and what held it was seen; without that it only grew;
- jump: within the last ten seconds it rose by a third of the limit or more, half of that at once, and was steady
  before;
- beginning: it was killed within the first steps;
- others: its own memory was less than half of the limit that was used up;
- recursion: when it was nearly used up, the innermost lines were those of a function that calls itself."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from faultlens.diagnosis.evidence.held import held_evidence
from faultlens.diagnosis.evidence.leaks import evidence_of, fixes_of, growth_of
from faultlens.diagnosis.evidence.recursion import repeated
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame, Growth, Sample
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.sizes import in_words

JUMP_S = 10.0
JUMP = 1 / 3  # of the limit
AT_ONCE = 1 / 2, JUMP_S / 3  # of the rise; an even climb makes a third of it in that time
FEW_STEPS = 3
OTHERS = 1 / 2  # of the limit
HELD_BESIDE_A_LEAK = 2
RECURSION = 0.3  # of the innermost calls; layers of layers go through the same functions less often

Kind = Literal["leak", "growth", "jump", "beginning", "others", "recursion", "unknown"]
_KILLED = re.compile(r"Killed process (?P<pid>\d+) .*?anon-rss:(?P<kilobytes>\d+)kB")
_PHASES = {
    "train": "training",
    "evaluate": "an evaluation",
    "predict": "a prediction",
    "save": "a save",
    "data": "waiting for data",
    "trace": "tracing a function",
}


class MemoryDeath(NamedTuple):
    kind: Kind
    title: str  # " after a leak: …"; empty where nothing more is known
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()


def memory_death(crash: Crash) -> MemoryDeath:
    death = _recursion(crash) or _death(crash)
    most = HELD_BESIDE_A_LEAK if death.kind == "leak" else None  # what grew explains it
    return death._replace(evidence=(*_stood(crash), *death.evidence, *held_evidence(crash, most)))


def last_line(crash: Crash) -> Frame | None:
    """The user's line at which it stood when memory was nearly used up."""
    return next((frame for frame in crash.last_lines.frames if is_own(frame)), None) if crash.last_lines else None


def _death(crash: Crash) -> MemoryDeath:
    growth = growth_of(crash, "memory", "shared memory")
    if growth is not None:
        return _leak(growth)
    samples = [sample for sample in crash.timeline if sample.rss_anonymous is not None]
    limit = crash.cgroup.memory_limit if crash.cgroup else None
    limit = limit or (crash.machine.memory_total if crash.machine else None)
    if len(samples) < 2 or not limit:
        return MemoryDeath("unknown", "", _rise(samples))
    return (
        _others(crash, samples, limit)
        or _jump(crash, samples, limit)
        or _beginning(crash, samples)
        or MemoryDeath("unknown", "", _rise(samples))
    )


def phase_in_words(crash: Crash) -> str | None:
    """ "a save of model.keras"."""
    progress = crash.progress
    if progress is None or progress.phase is None:
        return None
    words = _PHASES.get(progress.phase, progress.phase)
    name = (progress.detail or "").rpartition("/")[2]
    return f"{words} of {name}" if name and progress.phase in ("save", "trace") else words


def _recursion(crash: Crash) -> MemoryDeath | None:
    found = repeated(crash.last_lines.frames) if crash.last_lines else None
    if found is None or crash.last_lines is None or found.times < RECURSION * len(crash.last_lines.frames):
        return None
    fact = f"the innermost {found.times} calls of {found.function} had not returned, and there were others before"
    return MemoryDeath(
        "recursion",
        f"{found.function} calls itself without end",
        (Evidence(fact=fact, source="last lines"),),
        (
            Fix(title="look at what ends the recursion", detail="a case that is never reached, a circle in the data"),
            Fix(
                title="leave Python's own limit on recursion as it is",
                detail="without sys.setrecursionlimit this is a RecursionError, with its lines",
                grade="safe",
            ),
        ),
    )


def _stood(crash: Crash) -> tuple[Evidence, ...]:
    seen, line = crash.last_lines, last_line(crash)
    if seen is None or line is None:
        return ()
    before = f"{max((crash.seconds or seen.seconds) - seen.seconds, 0):,.1f} s before the end"
    share = f"{100 * seen.used // max(seen.limit, 1)}% of {in_words(seen.limit)} were used"
    name = (line.file or "").rpartition("/")[2]
    fact = f"{before}, when {share}, it stood in {line.function} ({name}:{line.line})"
    return (Evidence(fact=fact, source="last lines"),)


def _leak(growth: Growth) -> MemoryDeath:
    held = growth.holders[0].text if growth.holders else None
    kind: Kind = "leak" if growth.holders else "growth"
    title = f"it grew with every {'step' if growth.per_step is not None else 'second'} until the end"
    title = f"a leak: {held}" if held else title
    advice = Fix(
        title="look for what is kept from step to step",
        detail="tensors and results in lists, functions that are traced again, variables made in the loop",
    )
    return MemoryDeath(kind, title, evidence_of(growth), fixes_of(growth) or (advice,))


def _others(crash: Crash, samples: list[Sample], limit: int) -> MemoryDeath | None:
    """Only what the kernel said counts: the last sample may be older than the last gigabyte."""
    own = _killed_with(crash)
    if own is None or own >= OTHERS * limit:
        return None
    fact = f"it had {in_words(own)} of its own; the rest of the {in_words(limit)} belonged to others"
    return MemoryDeath(
        "others",
        f"it had only {in_words(own)} of them itself",
        (*_rise(samples), Evidence(fact=fact, source="kernel log")),
        (
            Fix(
                title="look at what else runs in the same container or job",
                detail="its own worker processes count: fewer workers, smaller queues",
            ),
        ),
    )


def _jump(crash: Crash, samples: list[Sample], limit: int) -> MemoryDeath | None:
    last = samples[-1]
    end = max(last.rss_anonymous or 0, _killed_with(crash) or 0)
    before = [sample for sample in samples if sample.seconds <= (crash.seconds or last.seconds) - JUMP_S]
    if not before or end - (before[-1].rss_anonymous or 0) < JUMP * limit:
        return None
    earlier = [sample.rss_anonymous or 0 for sample in before[-len(before) // 2 :]]
    level = max(earlier)
    if level - min(earlier) > (end - level) / 2:
        return None  # it had been rising before
    if not _is_sudden([(sample.seconds, sample.rss_anonymous or 0) for sample in samples[len(before) - 1 :]], end):
        return None
    start = next(sample for sample in samples if sample.seconds > before[-1].seconds)
    seconds = max((crash.seconds or last.seconds) - start.seconds, 0.1)
    phase = phase_in_words(crash)
    during = f" during {phase}" if phase else ""
    fact = (
        f"its own memory jumped from {in_words(level)} to {in_words(end)} or more within {seconds:.0f} seconds{during}"
    )
    return MemoryDeath(
        "jump", f"one sudden jump{during}", (Evidence(fact=fact, source="timeline"),), _fixes_in_phase(crash)
    )


def _is_sudden(course: list[tuple[float, int]], end: int) -> bool:
    """Of samples that are far from each other it cannot be told, and is taken to be so."""
    share, seconds = AT_ONCE
    course = [*course, (course[-1][0], end)]
    return any(
        later - earlier >= share * (end - course[0][1])
        for number, (began, earlier) in enumerate(course)
        for next_one, (at, later) in enumerate(course[number + 1 :])
        if next_one == 0 or at - began <= seconds
    )


def _beginning(crash: Crash, samples: list[Sample]) -> MemoryDeath | None:
    steps = samples[-1].steps
    phase = phase_in_words(crash)
    if steps is None or steps > FEW_STEPS or phase is None:
        return None
    made = f"{steps} step{'' if steps == 1 else 's'}"
    return MemoryDeath(
        "beginning",
        f"too much from the beginning, in {phase} after {made}",
        (*_rise(samples), Evidence(fact=f"it was killed in {phase}, after {made}", source="progress")),
        (
            Fix(title="use smaller batches", detail="`faultlens forecast` says how large they may be"),
            *_fixes_in_phase(crash),
        ),
    )


def _fixes_in_phase(crash: Crash) -> tuple[Fix, ...]:
    phase = crash.progress.phase if crash.progress else None
    if phase == "save":
        fix = Fix(
            title="save in a format that needs no second copy of the weights",
            detail="SavedModel, tf.train.Checkpoint or faultlens.save",
            grade="safe",
        )
    elif phase == "evaluate":
        fix = Fix(title="evaluate in smaller batches", detail="batch_size or validation_batch_size")
    elif phase == "predict":
        fix = Fix(
            title="predict piece by piece", detail="predict_on_batch, writing results away instead of joining them"
        )
    elif phase == "data":
        fix = Fix(
            title="make shuffle and prefetch buffers smaller", detail="a shuffle buffer of file names, not of images"
        )
    else:
        return ()
    return (fix,)


def _killed_with(crash: Crash) -> int | None:
    """Its own memory, as the kernel counted it when it killed it."""
    found = [match for line in crash.kernel_log if (match := _KILLED.search(line)) and match["pid"] == str(crash.pid)]
    return int(found[-1]["kilobytes"]) << 10 if found else None


def _rise(samples: list[Sample]) -> tuple[Evidence, ...]:
    if len(samples) < 2:
        return ()
    first, last = samples[0].rss_anonymous or 0, samples[-1].rss_anonymous or 0
    return (
        Evidence(fact=f"its own memory grew from {in_words(first)} to {in_words(last)} or more", source="timeline"),
    )
