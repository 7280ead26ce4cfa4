"""Which values does generation k of the small model have? A function of k alone, so that every bit can be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import keras
import numpy as np

INPUTS, WIDTH, OUTPUTS, BATCH = (
    96,
    192,
    4,
    32,
)  # one variable of more than 64 KiB, with two of the optimizer's beside it


def build() -> Any:
    """A model of about 250 kB on the disk, with state of every kind: weights, averages, a random seed, an optimizer."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((INPUTS,)),
            keras.layers.Dense(WIDTH, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(OUTPUTS),
        ]
    )
    model.compile("adam", "mse")
    model.fit(np.ones((BATCH, INPUTS), "f"), np.ones((BATCH, OUTPUTS), "f"), batch_size=BATCH, verbose=0)
    return model


def variables_of(model: Any) -> list[Any]:
    """All that any format keeps: not the metrics."""
    return [*model.variables, *model.optimizer.variables]


def become(model: Any, generation: int) -> None:
    for number, variable in enumerate(variables_of(model)):
        variable.assign(_value(generation, number, tuple(variable.shape), variable.dtype))


def known(model: Any, generations: Iterable[int]) -> dict[int, Counter[bytes]]:
    """The values of each generation. Their order is that of the format, so they are counted."""
    shapes = [(tuple(variable.shape), variable.dtype) for variable in variables_of(model)]
    return {
        generation: Counter(_value(generation, number, *shape).tobytes() for number, shape in enumerate(shapes))
        for generation in generations
    }


def generation_of(values: Iterable[Any], generations: dict[int, Counter[bytes]], only: int) -> int | None:
    """The one whose values these are: `only` that many of them, bit for bit."""
    found = Counter(np.asarray(value).tobytes() for value in values)
    if found.total() != only:
        return None
    return next((generation for generation, all_of_it in generations.items() if found <= all_of_it), None)


@lru_cache(maxsize=1000)
def _value(generation: int, number: int, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng([generation, number])
    if dtype.startswith("float"):
        return np.asarray(chance.standard_normal(shape), dtype)
    return np.asarray(chance.integers(1, 1 << 30, shape), dtype)
