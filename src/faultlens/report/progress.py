"""How far the program had come: in words, and as marks on its memory timeline."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.records.crash import Crash, Progress, ProgressMark, Sample
from faultlens.report.facts import Pairs
from faultlens.text.quantities import duration
from faultlens.text.safe import one_line

_STANDSTILL_S = 1.0  # a shorter time since the last mark says nothing
_ABSURD_S = 1e9  # a damaged report may say so
_FILE = 120
_NUMBER = 24
_STEPS_MARKED = 6
_MOST_STEPS = 10**12

_DOING = {
    "train": "training",
    "evaluate": "evaluating",
    "predict": "predicting",
    "save": "saving",
    "data": "fetching data",
    "trace": "tracing",
}
_WITH_DETAIL = frozenset({"save", "trace"})  # what is being saved or traced


class Span(NamedTuple):
    """Something that began and ended; at the end of the program when it was not finished."""

    start: float  # seconds
    end: float | None
    text: str


class Epoch(NamedTuple):
    start: float
    number: str  # nothing when it is not known


def progress_in_words(progress: Progress | None) -> str | None:
    """ "in step 1,204 of epoch 3 (of 10), while saving model.keras"; None when nothing is known."""
    if progress is None:
        return None
    told = ", ".join(part for part in (_where(progress), _doing(progress)) if part)
    waited = progress.seconds_before
    if waited is not None and _STANDSTILL_S <= waited < _ABSURD_S:
        told += f"{'; ' if told else ''}no further sign of progress in the {duration(waited)} before the end"
    return told or None


def epochs(progress: Progress | None) -> list[Epoch]:
    marks = progress.marks if progress else ()
    begun = [mark for mark in marks if mark.kind == "epoch" and math.isfinite(mark.seconds)]
    numbers = [re.search(r"\d{1,9}", one_line(mark.text, 40)) for mark in begun]
    return [Epoch(mark.seconds, found[0] if found else "") for mark, found in zip(begun, numbers, strict=True)]


class Landmarks(NamedTuple):
    """What is marked along the timeline."""

    noun: str
    found: list[Epoch]


def landmarks(crash: Crash) -> Landmarks:
    """Epochs; where there are none, a few round numbers of steps."""
    begun = epochs(crash.progress)
    return Landmarks("epoch", begun) if begun else Landmarks("step", _round_steps(crash.timeline))


def _round_steps(samples: Sequence[Sample]) -> list[Epoch]:
    known = [(sample.steps, sample.seconds) for sample in samples if sample.steps and 0 <= sample.seconds < _ABSURD_S]
    last = min(known[-1][0], _MOST_STEPS) if known else 0
    sizes = (factor * 10**power for power in range(len(str(last))) for factor in (1, 2, 5))
    apart = next((size for size in sizes if size * _STEPS_MARKED >= last), 1)
    marked = [next((at for made, at in known if made >= number), None) for number in range(apart, last + 1, apart)]
    return [Epoch(at, f"{apart * index:,}") for index, at in enumerate(marked, 1) if at is not None]


def saves(progress: Progress | None) -> list[Span]:
    """What was saved when; the last one may be without an end."""
    found: list[Span] = []
    for mark in progress.marks if progress else ():
        if not math.isfinite(mark.seconds):
            continue
        if mark.kind == "save":
            found.append(Span(mark.seconds, None, one_line(mark.text, _FILE)))
        elif mark.kind == "saved" and found and found[-1].end is None:
            found[-1] = found[-1]._replace(end=mark.seconds)
    return found


def last_marks(progress: Progress | None, most: int) -> Pairs:
    """When, and what began then; the latest ones."""
    marks = progress.marks[-most:] if progress else ()
    return [(_time(mark.seconds), _mark(mark)) for mark in marks]


def _mark(mark: ProgressMark) -> str:
    """ "epoch 3", "save model.keras"."""
    told = mark.text if mark.text.startswith(mark.kind) else f"{mark.kind} {mark.text}"
    return one_line(told.strip(), _FILE)


def _where(progress: Progress) -> str:
    step = _of("step", progress.step, progress.steps)
    epoch = _of("epoch", progress.epoch, progress.epochs)
    return f"in {' of '.join(part for part in (step, epoch) if part)}" if step or epoch else ""


def _of(noun: str, number: int | None, total: int | None) -> str:
    """ "epoch 3 (of 10)"."""
    if number is None:
        return ""
    whole = f" (of {one_line(f'{total:,}', _NUMBER)})" if total is not None else ""
    return f"{noun} {one_line(f'{number:,}', _NUMBER)}{whole}"


def _doing(progress: Progress) -> str:
    if not progress.phase:
        return ""
    doing = _DOING.get(progress.phase)
    if doing is None:
        return f"in phase {one_line(progress.phase, 40)}"
    what = f" {one_line(progress.detail, _FILE)}" if progress.detail and progress.phase in _WITH_DETAIL else ""
    return f"while {doing}{what}"


def _time(seconds: float) -> str:
    return duration(seconds) if 0 <= seconds < _ABSURD_S else "?"
