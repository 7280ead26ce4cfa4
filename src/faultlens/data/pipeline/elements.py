"""What comes out of a pipeline: how many, what shapes, which values, and does an element stay as it was?"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faultlens.safe_text import one_line

HELD = 8  # elements that are kept while others are made
MAX_HELD = 256 << 20  # bytes
_NODES = re.compile(r"\{\{.*?\}\} ?|\[Op:\w+\]|name: *$")


class Leaf(NamedTuple):
    name: str
    tensor: Any


class NotFinite(NamedTuple):
    element: int
    name: str
    nans: int
    infinities: int
    size: int


@dataclass
class Passed:
    """One pass over the first elements."""

    digests: list[bytes] = field(default_factory=list)
    firsts: list[list[int | None]] = field(default_factory=list)  # first dimensions: images, labels …
    not_finite: dict[str, NotFinite] = field(default_factory=dict)  # the first of each component
    changed: tuple[int, str] | None = None  # the first element that did not stay as it was
    error: str = ""
    ended: bool = False


def passed(dataset: Any, elements: int, look: bool = True) -> Passed:
    """`look`: at the values, too."""
    result, held, size = Passed(), deque[tuple[int, list[Leaf], bytes]](), 0
    try:
        for number, element in enumerate(dataset.take(elements)):
            leaves = list(leaves_of(element))
            result.digests.append(_digest(leaves))
            if look:
                result.firsts.append(_firsts(element))
                _see_values(number, leaves, result)
            held.append((number, leaves, result.digests[-1]))
            size += _size(leaves)
            while len(held) > HELD or (size > MAX_HELD and len(held) > 1):
                size -= _size(held[0][1])
                _see_change(*held.popleft(), result)
        result.ended = len(result.digests) < elements
    except Exception as error:  # whatever the program's own functions raise
        result.error = words(error)
    for each in held:
        _see_change(*each, result)
    return result


def leaves_of(element: Any, name: str = "") -> Iterator[Leaf]:
    """The dense values in it, with the names that the program knows. Data sets in it (windows) are left out."""
    import tensorflow as tf

    if isinstance(element, dict):
        for key, value in element.items():
            yield from leaves_of(value, f"{name}[{key!r}]")
    elif isinstance(element, (tuple, list)):
        for number, value in enumerate(element):
            yield from leaves_of(value, f"{name}[{number}]")
    elif isinstance(element, tf.RaggedTensor):
        yield Leaf(name, element.flat_values)
        yield from (Leaf(f"{name} (rows)", splits) for splits in element.nested_row_splits)
    elif isinstance(element, tf.SparseTensor):
        yield from (Leaf(name, element.values), Leaf(f"{name} (indices)", element.indices))
    elif isinstance(element, tf.Tensor) and element.dtype not in (tf.variant, tf.resource):
        yield Leaf(name, element)


def words(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    lines = [line for line in (_NODES.sub("", line).strip() for line in text.splitlines()) if line]
    kind = type(error).__name__
    # Of an exception in a Python function its own message stands first.
    return one_line(f"{kind}: {lines[0]}" if lines else kind, 300)


def _digest(leaves: list[Leaf]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in leaves:
        values = tensor.numpy()
        digest.update(f"{name}{tensor.dtype}{tensor.shape}".encode())
        if isinstance(values, bytes):
            digest.update(values)
        elif values.dtype == object:
            for each in values.flat:
                digest.update(b"%d:" % len(each) + each)
        else:
            digest.update(values.tobytes())
    return digest.digest()


def _see_change(number: int, leaves: list[Leaf], before: bytes, result: Passed) -> None:
    if (result.changed is None or number < result.changed[0]) and _digest(leaves) != before:
        result.changed = (number, ", ".join(leaf.name for leaf in leaves if leaf.name)[:100])


def _see_values(number: int, leaves: list[Leaf], result: Passed) -> None:
    import numpy as np

    for name, tensor in leaves:
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex) or name in result.not_finite:
            continue
        values = tensor.numpy()
        values = values if values.dtype.kind in "fc" else values.astype(np.float32)  # bfloat16 and smaller
        if not np.isfinite(values).all():
            nans, infinities = int(np.isnan(values).sum()), int(np.isinf(values).sum())
            result.not_finite[name] = NotFinite(number, name, nans, infinities, int(values.size))


def _firsts(element: Any) -> list[int | None]:
    """Of (images, labels): how many there are of each, if that can be said."""
    if not isinstance(element, tuple) or not 2 <= len(element) <= 3:
        return []
    return [_first(part) for part in element]


def _first(part: Any) -> int | None:
    shape = getattr(part, "shape", None)
    return None if shape is None or not shape.rank or shape[0] is None else int(shape[0])


def _size(leaves: list[Leaf]) -> int:
    return sum(int(tensor.shape.num_elements() or 0) * tensor.dtype.size for _, tensor in leaves)
