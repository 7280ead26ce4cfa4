"""What was asked for, and all that was measured for it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from faultlens.forecasting.data_spec import DataSpec
from faultlens.forecasting.estimate import Estimate, Series, estimate
from faultlens.forecasting.runs import Ran
from faultlens.forecasting.subject import Function
from faultlens.records.forecast import Bound, Point

SaveFormat = Literal[".keras", ".h5", ".weights.h5", "savedmodel", "checkpoint"]
PREFETCHED = 2  # batches, where nothing else is said


class Options(NamedTuple):
    batch: int
    python: str
    bound: Bound
    optimizer: str | None = None
    save: SaveFormat = ".keras"
    spec: DataSpec = DataSpec({})
    data: Function | None = None  # a function that gives the user's own pipeline
    memory: int | None = None  # that the runs may take; by default most of what is left here


class Account(NamedTuple):
    subject: str
    options: Options
    series: list[Series]  # training
    base: int  # bytes that a process holds that has only built the model
    largest: dict[str, Any]  # what the largest run said
    saves: dict[str, Any]  # format → what saving took
    inference: Ran | None
    points: list[Point]
    too_much: Ran | None  # the smallest run that was stopped because of its memory

    @property
    def model(self) -> dict[str, Any]:
        described: dict[str, Any] = self.largest["model"]
        return described

    @property
    def example(self) -> int:
        """Bytes of one example; 0 where the user's own pipeline makes them."""
        return int(self.largest["example"] or 0)

    @property
    def known(self) -> int:
        """Bytes of one example and of what the layers make of it."""
        return self.example + int(self.model.get("outputs", 0))

    def estimate(self, batch: int) -> Estimate:
        return estimate(self.series, batch, self.base, self.known)

    @property
    def pipeline(self) -> int:
        """Bytes in the input pipeline: batches made ahead, and the one that is being made."""
        prefetched = PREFETCHED if self.options.spec.prefetch is None else self.options.spec.prefetch
        return self.example * self.options.batch * (prefetched + 1)

    @property
    def buffers(self) -> int:
        """Bytes of examples that are kept for shuffling, or for good; no run is long enough to fill them."""
        return self.example * (self.options.spec.shuffle + self.options.spec.cache)
