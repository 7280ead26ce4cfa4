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
            raise ValueError(f"mode={mode!r} is none of 'auto', 'min' and 'max'")
        self.name = name
        self.best = best
        self.direction = mode if mode != "auto" else "min" if name.removeprefix("val_") == "loss" else None

    def value_in(self, logs: Mapping[str, Any]) -> float | None:
        """None where it is missing, not finite, or not one number."""
        found = np.asarray(logs.get(self.name, np.nan))
        if found.size != 1 or found.dtype.kind not in "iufb":
            return None
        value = float(found.reshape(()))
        return value if math.isfinite(value) else None

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
        if than is None:
            return True
        return value > than if self.direction == "max" else value < than
