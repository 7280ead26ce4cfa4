"""Does a generator hand out the same memory again and again?

TensorFlow takes a NumPy array as it is, without a copy, where its address is a multiple of 64; elsewhere it copies. A
buffer that is used again therefore works, or gives wrong batches in silence, as malloc happens to decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

ALIGNMENT = 64  # bytes
ASKED = 5  # elements of the generator


class Reuse(NamedTuple):
    elements: tuple[int, int]
    name: str
    address: int

    @property
    def in_place(self) -> bool:
        return self.address % ALIGNMENT == 0


def reuse(generator: Callable[..., Any], spec: Any = None) -> Reuse | None:
    """Two elements in one memory, the first of which changed when the second was made."""
    try:
        elements = iter(generator())
    except Exception:  # it needs arguments, or fails: iterating the data set tells that
        return None
    dtypes = _dtypes(spec)
    held: list[tuple[int, str, Any, bytes]] = []
    try:
        for number in range(ASKED):
            for name, array in _arrays(next(elements)):
                address = array.__array_interface__["data"][0]
                for earlier, where, other, content in held:
                    # The earlier array is still held: the same address is the same memory.
                    same = other.__array_interface__["data"][0] == address and array.nbytes
                    if same and where == name and earlier < number and other.tobytes() != content:
                        return Reuse((earlier, number), name, address)
                if array.flags.c_contiguous and (dtypes is None or array.dtype in dtypes):  # others are copied
                    held.append((number, name, array, array.tobytes()))
    except Exception:  # also StopIteration
        pass
    finally:
        getattr(elements, "close", lambda: None)()
    return None


def _arrays(element: Any, name: str = "") -> list[tuple[str, Any]]:
    import numpy as np

    if isinstance(element, np.ndarray):
        return [(name, element)] if element.dtype != object else []
    if isinstance(element, dict):
        return [each for key, value in element.items() for each in _arrays(value, f"{name}[{key!r}]")]
    if isinstance(element, tuple):
        return [each for number, value in enumerate(element) for each in _arrays(value, f"{name}[{number}]")]
    return []


def _dtypes(spec: Any) -> set[Any] | None:
    if spec is None:
        return None
    import tensorflow as tf

    return {getattr(each.dtype, "as_numpy_dtype", None) for each in tf.nest.flatten(spec) if hasattr(each, "dtype")}
