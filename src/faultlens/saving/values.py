"""The values of variables as arrays that share their memory, so that saving them costs none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from faultlens.model_files.crc32c import crc32c
from faultlens.saving.region import BLOCK

Array = np.ndarray[Any, Any]


class Values:
    """Values as they were when `hold` was called, or else as they are when they are asked for."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Any, Array]] = {}  # the variable itself too: its id must not be given to another

    def hold(self, variables: Iterable[Any]) -> None:
        for variable in variables:
            self._held[id(variable)] = variable, array_of(variable)

    def release(self) -> None:
        """TensorFlow copies a variable before it changes it while somebody else looks at its memory."""
        self._held.clear()

    def of(self, variable: Any) -> Array:
        held = self._held.get(id(variable))
        return held[1] if held is not None else array_of(variable)


def array_of(value: Any) -> Array:
    """Without a copy where TensorFlow has the value in main memory."""
    inner = getattr(value, "_value", value)  # Keras' variables hold TensorFlow's
    tensor = inner.read_value() if hasattr(inner, "read_value") else inner
    if hasattr(tensor, "_numpy"):
        return np.asarray(tensor._numpy())
    return np.asarray(value)


def size_of(variable: Any) -> int:
    """In bytes, without reading it."""
    inner = getattr(variable, "_value", variable)
    dtype = inner.dtype
    item = getattr(dtype, "size", 0) or np.dtype(getattr(dtype, "as_numpy_dtype", dtype)).itemsize
    return int(np.prod([int(each) for each in inner.shape], dtype=np.int64)) * int(item)


def blocks(array: Array) -> Iterator[memoryview]:
    """The bytes of an array in the order of C. Types of ml_dtypes have no buffers of their own."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, data.size, BLOCK):
        yield data[start : start + BLOCK].data


def checksum_of(array: Array) -> int:
    crc = 0
    for block in blocks(array):
        crc = crc32c(block, crc)
    return crc
