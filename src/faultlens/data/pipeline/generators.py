"""Does a generator use its memory again, or does TensorFlow change its values?

TensorFlow takes a NumPy array as it is, without a copy, where its address is a multiple of 64; elsewhere it copies. A
buffer that is used again therefore works, or gives wrong batches in silence, as malloc happens to decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

ALIGNMENT = 64  # bytes
ASKED = 5  # elements of the generator


class Reuse(NamedTuple):
    """An element that changed when another one was made."""

    element: int
    later: int
    name: str
    address: int
    same: bool  # both have this address

    @property
    def in_place(self) -> bool:
        return self.address % ALIGNMENT == 0


class Converted(NamedTuple):
    """A value that does not survive the conversion to the promised type."""

    element: int
    name: str
    value: Any
    dtype: Any
    becomes: Any
    promised: Any


def reuse(generator: Callable[..., Any], spec: Any = None) -> Reuse | None:
    dtypes = _dtypes(spec)
    held: list[tuple[int, str, Any, bytes]] = []
    for number, element in _elements(generator):
        arrays = dict(_arrays(element))
        for earlier, name, array, content in held:
            # It is still held: nobody else can have got its memory.
            if array.tobytes() != content:
                here = arrays.get(name)
                same = here is not None and _address(here) == _address(array)
                return Reuse(earlier, number, name, _address(array), same)
        for name, array in arrays.items():
            if array.flags.c_contiguous and (dtypes is None or array.dtype in dtypes):  # others are copied
                held.append((number, name, array, array.tobytes()))
    return None


def converted(generator: Callable[..., Any], spec: Any) -> Converted | None:
    """from_generator converts without a word: 0.7 becomes 0, and 300 becomes 44."""
    import numpy as np

    for number, element in _elements(generator):
        for name, value, promise in _promised(element, spec):
            try:
                array, dtype = np.asarray(value), np.dtype(promise.dtype.as_numpy_dtype)
            except Exception:  # no tensor, or nothing that could become one: TensorFlow says so
                continue
            if array.dtype.kind not in "iuf" or dtype.kind not in "iu" or array.dtype == dtype:
                continue
            with np.errstate(all="ignore"):
                changed = array[array.astype(dtype) != array]
                if changed.size:
                    return Converted(number, name, changed[0], array.dtype, changed[0].astype(dtype), dtype)
    return None


def _elements(generator: Callable[..., Any]) -> Iterator[tuple[int, Any]]:
    """The first ones, until it fails: to iterate the data set tells that."""
    try:
        elements = iter(generator())
    except Exception:  # it may need arguments
        return
    try:
        for number in range(ASKED):
            yield number, next(elements)
    except Exception:  # also StopIteration
        return
    finally:
        getattr(elements, "close", lambda: None)()


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _arrays(element: Any, name: str = "") -> list[tuple[str, Any]]:
    import numpy as np

    if isinstance(element, np.ndarray):
        return [(name, element)] if element.dtype != object else []
    if isinstance(element, dict):
        return [each for key, value in element.items() for each in _arrays(value, f"{name}[{key!r}]")]
    if isinstance(element, tuple):
        return [each for number, value in enumerate(element) for each in _arrays(value, f"{name}[{number}]")]
    return []


def _promised(element: Any, spec: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Values with what was promised of them; nothing where they do not have the same structure."""
    if isinstance(spec, dict):
        for key in spec.keys() & (element.keys() if isinstance(element, dict) else ()):
            yield from _promised(element[key], spec[key], f"{name}[{key!r}]")
    elif isinstance(spec, tuple):
        for number, (value, each) in enumerate(zip(element, spec, strict=False) if isinstance(element, tuple) else ()):
            yield from _promised(value, each, f"{name}[{number}]")
    else:
        yield name, element, spec


def _dtypes(spec: Any) -> set[Any] | None:
    if spec is None:
        return None
    import numpy as np
    import tensorflow as tf

    dtypes = (getattr(getattr(each, "dtype", None), "as_numpy_dtype", object) for each in tf.nest.flatten(spec))
    return {np.dtype(each) for each in dtypes}
