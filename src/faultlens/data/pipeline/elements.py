"""What comes out of a pipeline: how many, what shapes, which values, and does an element stay as it was?"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faultlens.text.safe import one_line

HELD = 8  # elements that are kept while others are made
MAX_HELD = 256 << 20  # bytes
_NODES = re.compile(r"\{\{.*?\}\} ?|\[Op:\w+\]|name: *$|Error in user-defined function passed to .*?: Iterator::\S+: ")

Shape = tuple[int | None, ...]


class Leaf(NamedTuple):
    name: str  # as the program has it: [0]['image']
    value: Any  # a tensor, also a ragged or a sparse one


class Held(NamedTuple):
    element: int
    leaf: Leaf
    digest: bytes
    size: int


class NotFinite(NamedTuple):
    element: int
    name: str
    nans: int
    infinities: int
    size: int


class Changed(NamedTuple):
    """An element that did not stay as it was."""

    element: int
    name: str
    address: int | None


@dataclass
class Passed:
    """One pass over the first elements."""

    digests: list[bytes] = field(default_factory=list)
    shapes: list[dict[str, Shape]] = field(default_factory=list)
    not_finite: dict[str, NotFinite] = field(default_factory=dict)  # the first of each component
    changed: Changed | None = None  # the first one
    error: str = ""
    ended: bool = False


def passed(dataset: Any, elements: int, look: bool = True) -> Passed:
    """`look`: at shapes and values, too."""
    result, waiting = Passed(), deque[list[Held]]()
    try:
        for number, element in enumerate(dataset.take(elements + 1)):
            if number == elements:
                break
            held = [Held(number, leaf, _digest(leaf), _size(leaf)) for leaf in leaves_of(element)]
            result.digests.append(b"".join(each.digest for each in held))
            if look:
                result.shapes.append({leaf.name: tuple(leaf.value.shape) for _, leaf, _, _ in held})
                for each in held:
                    _see_values(number, each.leaf, result)
            waiting.append(held)
            while len(waiting) > HELD or (len(waiting) > 1 and _bytes(waiting) > MAX_HELD):
                _see_change(waiting.popleft(), result)
        else:
            result.ended = True
    except Exception as error:  # whatever the program's own functions raise
        if len(result.digests) < elements:  # one more than was asked for only tells whether there are more
            result.error = words(error)
    for held in waiting:
        _see_change(held, result)
    return result


def leaves_of(element: Any, name: str = "") -> Iterator[Leaf]:
    """Data sets in it (windows) are left out."""
    import tensorflow as tf

    if isinstance(element, dict):
        for key, value in element.items():
            yield from leaves_of(value, f"{name}[{key!r}]")
    elif isinstance(element, (tuple, list)):
        for number, value in enumerate(element):
            yield from leaves_of(value, f"{name}[{number}]")
    elif getattr(element, "dtype", None) in (tf.variant, tf.resource):
        return
    elif isinstance(element, (tf.RaggedTensor, tf.SparseTensor, tf.Tensor)):
        yield Leaf(name, element)


def words(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    lines = [line for line in (_NODES.sub("", line).strip() for line in text.splitlines()) if line]
    kind = type(error).__name__
    # Of an exception in a Python function its own message stands first.
    return one_line(f"{kind}: {lines[0]}" if lines else kind, 300)


def _dense(value: Any) -> list[Any]:
    import tensorflow as tf

    if isinstance(value, tf.RaggedTensor):
        return [value.flat_values, *value.nested_row_splits]
    if isinstance(value, tf.SparseTensor):
        return [value.values, value.indices, value.dense_shape]
    return [value]


def _digest(leaf: Leaf) -> bytes:
    digest = hashlib.blake2b(leaf.name.encode("utf-8", "replace"), digest_size=16)
    for tensor in _dense(leaf.value):
        values = tensor.numpy()
        digest.update(f"{tensor.dtype}{tensor.shape}".encode())
        if isinstance(values, bytes):
            digest.update(values)
        elif values.dtype == object:
            for each in values.flat:
                digest.update(b"%d:" % len(each) + each)
        else:
            digest.update(values.tobytes())
    return digest.digest()


def _see_change(held: list[Held], result: Passed) -> None:
    for number, leaf, before, _ in held:
        if result.changed is None and _digest(leaf) != before:
            result.changed = Changed(number, leaf.name, _address(leaf.value))


def _address(value: Any) -> int | None:
    import numpy as np

    try:
        return int(np.asarray(memoryview(value)).__array_interface__["data"][0])
    except (TypeError, ValueError, BufferError):
        return None


def _see_values(number: int, leaf: Leaf, result: Passed) -> None:
    import numpy as np

    tensor = _dense(leaf.value)[0]
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex) or leaf.name in result.not_finite:
        return
    values = tensor.numpy()
    values = values if values.dtype.kind in "fc" else values.astype(np.float32)  # bfloat16 and smaller
    if not np.isfinite(values).all():
        nans, infinities = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        result.not_finite[leaf.name] = NotFinite(number, leaf.name, nans, infinities, int(values.size))


def _size(leaf: Leaf) -> int:
    return sum(int(tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in _dense(leaf.value))


def _bytes(waiting: deque[list[Held]]) -> int:
    return sum(each.size for held in waiting for each in held)
