"""Whether a training has become better: one quantity in the logs of Keras, and which of two values of it is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


class Monitored:
    """The quantity `name`. `direction` is "min" or "max", or None as long as nobody knows."""

    def __init__(self, name: str, mode: str, best: float | None) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode={mode!r} is not one of 'auto', 'min' and 'max'")
        self.name = name
        self.best = self.saved = best  # `saved`: of those states that were saved
        self.direction = mode if mode != "auto" else "min" if name.removeprefix("val_") == "loss" else None

    def value_in(self, logs: Mapping[str, Any]) -> float | None:
        """None where it is missing, or not one number."""
        found = np.asarray(logs.get(self.name))
        return float(found.reshape(())) if found.size == 1 and found.dtype.kind in "iufb" else None

    def find_direction(self, model: Any) -> None:
        """Keras' metrics know theirs. They are only there when the first batch has been trained on."""
        if self.direction is not None:
            return
        name = self.name.removeprefix("val_")
        for group in getattr(model, "metrics", ()):
            for metric in getattr(group, "metrics", [group]):
                known = getattr(metric, "_direction", None)
                if known and (name == metric.name or name.endswith(f"_{metric.name}")):
                    self.direction = "max" if known == "up" else "min"
                    return

    def is_better(self, value: float, than: float | None) -> bool:
        """NaN never is: nothing would be better than that afterwards."""
        if than is None:
            return math.isfinite(value)
        return value > than if self.direction == "max" else value < than

    def conclude(self, best: float | None, succeeded: bool) -> None:
        """A save of the state with this value has ended. If it failed, a worse one is better than none."""
        if succeeded:
            self.saved = best
        elif self.best == best:
            self.best = self.saved


def as_json(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
