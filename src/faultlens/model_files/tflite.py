"""TensorFlow Lite models: a flatbuffer whose tables and weights must lie within the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import UnreadError, opened, size_of

IDENTIFIER = b"TFL3"
# Fields in the order of their schema: of Model, Buffer and SubGraph.
OPERATOR_CODES, SUBGRAPHS, BUFFERS = 1, 2, 4
DATA, OFFSET, SIZE = 0, 1, 2
TENSORS, OPERATORS = 0, 3
MAX_TABLES = 1_000_000


class Image(NamedTuple):
    file: BinaryIO
    size: int

    def at(self, position: int, length: int) -> bytes:
        """At most as many bytes as there are."""
        if not 0 <= position < self.size:
            return b""
        self.file.seek(position)
        return self.file.read(length)


class FlatError(ValueError):
    """The tables lead out of the file."""


def read(path: Path) -> Saved:
    size, sizes = size_of(path) or 0, list[int]()
    with opened(path) as file:
        what = _damage(Image(file, size), sizes)
    return Saved(
        path=path,
        kind="TensorFlow Lite model",
        files=1,
        size=size,
        weights=sum(sizes),
        largest=max(sizes, default=0),
        damages=(Damage(path, what),) if what else (),
    )


def _damage(image: Image, sizes: list[int]) -> str | None:
    if image.size == 0:
        return "is empty"
    if image.at(4, 4) != IDENTIFIER:
        return "is no TensorFlow Lite model: it does not begin with TFL3"
    try:
        _graph(image)
        for start, length in _buffers(image):
            if start + length > image.size:
                return f"ends at byte {image.size}, its weights at {start + length}"
            sizes.append(length)
    except FlatError as error:
        return f"is damaged: {error}"
    return None


def _buffers(image: Image) -> Iterator[tuple[int, int]]:
    """Where the weights lie: within the flatbuffer, or behind it in models of more than 2 GB."""
    for table in _tables(image, _root(image), BUFFERS):
        if (data := _reference(image, table, DATA)) is not None:
            yield data + 4, _number(image, data, "<I")
        elif (offset := _field(image, table, OFFSET)) is not None and (size := _field(image, table, SIZE)) is not None:
            start = _number(image, offset, "<Q")
            if start > 1:  # 0 and 1 stand for "not there"
                yield start, _number(image, size, "<Q")


def _graph(image: Image) -> None:
    """Every table of ops, tensors and graphs must lie within the file: the interpreter reads them unchecked."""
    for code in _tables(image, _root(image), OPERATOR_CODES):
        _number(image, code, "<i")
    graphs = 0
    for graph in _tables(image, _root(image), SUBGRAPHS):
        graphs += 1
        for table in (*_tables(image, graph, TENSORS), *_tables(image, graph, OPERATORS)):
            _field(image, table, 0)
    if not graphs:
        raise FlatError("it holds no graph")


def _tables(image: Image, table: int, field: int) -> Iterator[int]:
    """The tables of a list."""
    vector = _reference(image, table, field)
    count = _number(image, vector, "<I") if vector is not None else 0
    if vector is None or count == 0:
        return
    if count > image.size // 4:
        raise FlatError(f"it has a list of {count} tables")
    if count > MAX_TABLES:
        raise UnreadError(f"it has a list of more than {MAX_TABLES} tables")
    for index in range(count):
        place = vector + 4 + 4 * index
        yield place + _number(image, place, "<I")


def _root(image: Image) -> int:
    return _number(image, 0, "<I")


def _reference(image: Image, table: int, field: int) -> int | None:
    place = _field(image, table, field)
    return place + _number(image, place, "<I") if place is not None else None


def _field(image: Image, table: int, field: int) -> int | None:
    """Where a field of a table lies; None where it is left out."""
    vtable = table - _number(image, table, "<i")
    if 4 + 2 * field + 2 > _number(image, vtable, "<H"):
        return None
    offset = _number(image, vtable + 4 + 2 * field, "<H")
    return table + offset if offset else None


def _number(image: Image, position: int, code: str) -> int:
    raw = image.at(position, struct.calcsize(code))
    if len(raw) < struct.calcsize(code):
        raise FlatError(f"it leads to byte {position} of {image.size}")
    return int(struct.unpack(code, raw)[0])
