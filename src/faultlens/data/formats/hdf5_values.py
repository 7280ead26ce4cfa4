"""Which values of an HDF5 dataset cannot be read, or are not finite? In blocks, along its chunks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from faultlens.data.formats.numpy_array import index_in, not_finite
from faultlens.data.formats.reading import Spot, numbers_are
from faultlens.data.look import Look
from faultlens.text.sizes import GIB, MIB, in_words

if TYPE_CHECKING:
    import numpy

BLOCK = 32 * MIB
MAX_CHUNK = GIB
# What was never written takes no room: datasets may be declared as large as one likes.
MAX_RATIO, HARMLESS = 10_000, GIB
VARIABLE = 4096  # bytes that an element of unknown length counts as


def check_values(dataset: Any, look: Look, spot: Spot) -> None:
    """Raises whatever h5py does."""
    shape = dataset.shape
    if shape is None or 0 in shape:
        return
    stored, item = dataset.id.get_storage_size(), max(dataset.dtype.itemsize, 1)
    if not stored and dataset.chunks is not None:
        look.note(f"{spot.member} was never written")
        return
    whole = math.prod(shape) * item
    if whole > HARMLESS and whole > MAX_RATIO * stored:
        reason = f"it has room for {in_words(whole)}, of which {in_words(stored)} are stored: not read"
        look.flaw("unsupported", reason, **spot.keywords())
        return
    chunk = dataset.chunks or (1,) * len(shape)
    if math.prod(chunk) * item > MAX_CHUNK:
        look.flaw("unsupported", f"its chunks of {in_words(math.prod(chunk) * item)} are not read", **spot.keywords())
        return
    if dataset.dtype.hasobject:
        item = VARIABLE
    bad, first = 0, ""
    for start, block in _blocks(dataset, shape, _block_shape(shape, chunk, item)):
        found, place = _not_finite(block)
        if found and not bad:
            first = str([at + more for at, more in zip(start, index_in(block.shape, place), strict=True)])
        bad += found
    if bad:
        reason = f"{numbers_are(bad)} NaN or infinite, the first at {first}"
        look.flaw("not-finite", reason, **spot.keywords())


def _block_shape(shape: tuple[int, ...], chunk: tuple[int, ...], item: int) -> tuple[int, ...]:
    """As large as is allowed, a multiple of the chunks, the last dimensions first: they lie side by side."""
    block = [min(*each) for each in zip(shape, chunk, strict=True)]
    for axis in reversed(range(len(shape))):
        room = max(BLOCK // (math.prod(block) * item), 1)
        block[axis] = min(block[axis] * room, shape[axis])
        if block[axis] < shape[axis]:
            break
    return tuple(block)


def _blocks(
    dataset: Any, shape: tuple[int, ...], block: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], numpy.ndarray[Any, Any]]]:
    import numpy

    for start in itertools.product(*(range(0, size, step) for size, step in zip(shape, block, strict=True))):
        part = tuple(slice(at, at + step) for at, step in zip(start, block, strict=True))
        yield start, numpy.asarray(dataset[part])


def _not_finite(values: numpy.ndarray[Any, Any]) -> tuple[int, int]:
    """Also in arrays of different lengths, which are elements of their own."""
    import numpy

    if values.dtype.kind != "O":
        return not_finite(values)
    bad, first = 0, 0
    for place, value in enumerate(values.flat):
        if isinstance(value, numpy.ndarray) and value.dtype.kind in "fc" and (found := not_finite(value)[0]):
            first = first if bad else place
            bad += found
    return bad, first
