"""What `faultlens forecast` says of the memory that a model will take: records that are shown and written as JSON."""

from __future__ import annotations

from typing import Literal

from faultlens.records.crash import Record

SCHEMA_VERSION = 1
MOST_BATCH = 1 << 20  # none larger is looked for

Phase = Literal["training", "evaluation", "inference", "saving"]
# measured: with this very batch; extrapolated: from runs with smaller ones; reckoned: from what is known of the model
How = Literal["measured", "extrapolated", "reckoned"]
Verdict = Literal["fits", "does not fit", "too close to tell"]


class Parts(Record, frozen=True, omit_defaults=False):
    """What the peak is made of, in bytes; they add up to it."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0  # and whatever else grows with the batch
    input_pipeline: int = 0
    runtime: int = 0  # Python, TensorFlow, the graphs, memory that the allocator keeps


class Peak(Record, frozen=True, omit_defaults=False):
    """The most anonymous memory of one phase, in bytes."""

    peak: int
    low: int  # the true one is expected …
    high: int  # … between these
    parts: Parts
    how: How
    verdict: Verdict | None = None


class SavePeak(Record, frozen=True, omit_defaults=False):
    """What saving in one format takes."""

    format: str
    extra: int  # bytes on top of what the training holds at that moment
    peak: Peak


class Bound(Record, frozen=True):
    """What must not be exceeded."""

    limit: int
    what: str  # "the control group", "the memory that this machine has left", "as given"
    gpu: bool = False  # it holds for what lies on the GPU


class Point(Record, frozen=True):
    """One measured run."""

    phase: Phase
    batch: int
    steps: int
    peak: int  # bytes; the most that was seen, where it was stopped
    seconds_per_step: float | None = None
    stopped: Literal["", "memory", "time"] = ""


class Advice(Record, frozen=True):
    """Something that makes it smaller."""

    title: str
    detail: str
    gain: int  # bytes off the peak
    how: How
    fits: bool = False  # with this alone


class Forecast(Record, frozen=True, omit_defaults=False):
    subject: str
    model: str
    batch: int
    parameters: int | None
    optimizer: str | None
    versions: dict[str, str]
    bound: Bound
    training: Peak
    evaluation: Peak | None
    inference: Peak | None
    saving: SavePeak | None
    lower_bound: int  # of training, from the sizes of variables and inputs alone
    largest_batch: int | None  # whose upper bound fits; None: there is none
    points: tuple[Point, ...] = ()
    advice: tuple[Advice, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was odd about the runs
    seconds: float = 0.0
    import_seconds: float = 0.0
    schema_version: int = SCHEMA_VERSION
