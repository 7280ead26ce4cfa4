"""Which random examples does a model of forecast_models.py train on?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import keras
import numpy as np

WORD = re.compile(r"([\w.]+)=(\w+)\[([\d,]*)\](?:<(\d+))?")


class Array(NamedTuple):
    """One input or label of an example."""

    dtype: str
    shape: tuple[int, ...]
    below: int = 2  # for integers

    def random(self, count: int, chance: np.random.Generator) -> np.ndarray:
        if self.dtype.startswith("int"):
            return chance.integers(0, self.below, (count, *self.shape), dtype=self.dtype)
        return chance.random((count, *self.shape), dtype="float32").astype(self.dtype)

    @property
    def size(self) -> int:
        """Bytes of one example."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class Example(NamedTuple):
    inputs: dict[str, Array]
    labels: dict[str, Array]  # "" is the name of an only one

    def pool(self, count: int) -> Any:
        """Random examples, as model.fit takes them."""
        chance = np.random.default_rng(0)
        inputs = {name: each.random(count, chance) for name, each in self.inputs.items()}
        labels = {name: each.random(count, chance) for name, each in self.labels.items()}
        x: Any = inputs if len(inputs) > 1 else next(iter(inputs.values()))
        return (x, labels.get("", labels)) if labels else x

    @property
    def size(self) -> int:
        return sum(each.size for each in (*self.inputs.values(), *self.labels.values()))


def example_of(model: keras.Model, spec: str | None) -> Example:
    """What the spec says, and for the rest what the model declares."""
    named = dict(_specified(spec or ""))
    labels = {name[2:]: named.pop(name) for name in list(named) if name == "y" or name.startswith("y.")}
    inputs = named
    if not inputs:
        inputs = {each.name: Array(each.dtype, tuple(each.shape[1:])) for each in model.inputs}
    return Example(inputs, labels or _declared_labels(model))


def _specified(spec: str) -> Iterator[tuple[str, Array]]:
    for word in spec.split():
        name, dtype, shape, below = WORD.fullmatch(word).groups()  # type: ignore[union-attr]
        yield name, Array(dtype, tuple(int(each) for each in shape.split(",") if each), int(below or 2))


def _declared_labels(model: keras.Model) -> dict[str, Array]:
    """One for each output with a loss; of a model without declared outputs none."""
    if not getattr(model, "outputs", None):
        return {}
    if isinstance(model.loss, dict):
        return {name: _label(model.output[name].shape, loss) for name, loss in model.loss.items()}
    return {"": _label(model.outputs[0].shape, model.loss)}


def _label(shape: tuple[int | None, ...], loss: Any) -> Array:
    rest = tuple(size or 1 for size in shape[1:])
    name = loss if isinstance(loss, str) else loss.name
    return Array("int32", rest[:-1], rest[-1]) if name.startswith("sparse_") else Array("float32", rest)
