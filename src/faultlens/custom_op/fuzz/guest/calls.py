"""One call of an op, ready to be made. Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from . import comparing, tensors

MAX_WORDS = 600
MOST_COMPARED = 1 << 22  # bytes of an input that are looked at again after the call
CONTROL = "control: identity"

library: Any = None  # the module of the op's Python functions


class Call:
    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        is_control = asked["function"] == CONTROL
        self.function: Callable[..., Any] = identity if is_control else getattr(library, asked["function"])
        self.arguments = tensors.arguments_of(asked)
        self.settings = tensors.settings_of(asked)
        self.tensors = tensors.flat(self.arguments)

    def __call__(self, *given: Any) -> list[Any]:
        """The outputs, as tensors. With `given`, they take the place of the inputs."""
        arguments = tensors.grouped(self.arguments, given) if given else self.arguments
        return listed(self.function(**arguments, **self.settings))

    def results(self) -> list[Any]:
        return values(self())

    def specs(self, known: bool) -> list[Any]:
        return [tf.TensorSpec(each.shape if known else None, each.dtype) for each in self.tensors]

    def seconds(self) -> float:
        """That one call takes."""
        start = time.monotonic()
        self()
        return time.monotonic() - start

    def differs(self, alone: list[Any], results: list[Any], where: str) -> list[list[str]]:
        """Only where the same input always gives the same result."""
        if not self.asked.get("steady"):
            return []
        different = comparing.difference(alone, results)
        return [["differs", f"{different} (eager first, then {where})"]] if different else []


def identity(**given: Any) -> Any:
    """What TensorFlow itself makes of the same inputs."""
    inputs = [each for value in given.values() for each in (value if isinstance(value, list) else [value])]
    plain = [each for each in inputs if isinstance(each, tf.Tensor)]
    return tf.raw_ops.IdentityN(input=plain) if plain else tf.constant(0)


def listed(result: Any) -> list[Any]:
    if result is None or isinstance(result, tf.Operation):
        return []
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in listed(part)]
    return [result]


def values(outputs: list[Any]) -> list[Any]:
    return [each.numpy() if each.dtype not in (tf.resource, tf.variant) else np.zeros(0) for each in outputs]


def contents(inputs: list[Any]) -> list[Any]:
    return [np.array(each.numpy()) for each in inputs if int(np.prod(each.shape)) * each.dtype.size < MOST_COMPARED]


def shapes(results: list[Any]) -> list[list[int]]:
    return [list(np.shape(each)) for each in results]


def words(error: BaseException) -> str:
    return " ".join(str(error).split())[:MAX_WORDS]
