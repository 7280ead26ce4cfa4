"""Arrow's IPC format (`.arrow`, `.feather`): can every batch be read? Files with a footer, and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultlens.data.formats.base import Format, Item
from faultlens.data.formats.reading import DamageError, SourceFile
from faultlens.data.formats.tables import Column, columns_to_check, images_in, tell_error, tell_schema
from faultlens.data.groups import group_of
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place

MAGIC, OLD = b"ARROW1", b"FEA1"
CONTINUED, END = b"\xff" * 4, b"\xff" * 4 + bytes(4)
SCHEMA = "the schema"
_READ = (
    OSError,
    ValueError,
    NotImplementedError,
    TypeError,
    KeyError,
    MemoryError,
)  # what pyarrow raises over foreign bytes


class ArrowFile(Format):
    name = "Arrow"
    suffixes = (".arrow", ".feather", ".arrows", ".ipc")
    needs = ("pyarrow",)

    def begins(self, head: bytes) -> bool:
        # Of a stream: a mark, the length of the schema, and in it an offset that is small.
        stream = head[:4] == CONTINUED and 0 < int.from_bytes(head[4:8], "little") < 1 << 24
        return head.startswith((MAGIC, OLD)) or (stream and int.from_bytes(head[8:12], "little") < 1 << 8)

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        size = piece.identity.size
        file = SourceFile(source, size)
        try:
            is_file = _is_file(source, size)
            if look.at(SCHEMA):
                _check(_opened(file, is_file), file, look)
            if not is_file:
                _check_end(source, file.tell(), size)
        except DamageError as damage:
            look.flaw(damage.kind, damage.reason, offset=damage.offset)
        except ImportError:
            raise
        except Exception as error:
            tell_error(error, file, look)

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        file = SourceFile(source, piece.identity.size)
        try:
            reader, start = _opened(file, _is_file(source, piece.identity.size)), 0
            for _, batch in _batches(reader, None):
                batch.validate(full=True)
                for name, values in zip(batch.schema.names, batch.columns, strict=True):
                    for row, data in images_in(values, start):
                        yield Item(Place(path=piece.path, record=row, size=len(data), member=name), "image", data)
                start += batch.num_rows
        except (DamageError, *_READ):
            file.raise_failure()


def _is_file(source: Source, size: int) -> bool:
    """With a footer, or a stream. Raises DamageError."""
    begin = source.read(0, 8)
    if begin.startswith(OLD):
        raise DamageError("unsupported", "it is of the first version of Feather")
    if not begin.startswith(MAGIC):
        return False
    if size < 18 or source.read(size - len(MAGIC), len(MAGIC)) != MAGIC:
        raise DamageError("truncated", "the footer at its end is missing", size)
    length = int.from_bytes(source.read(size - 10, 4), "little")
    if length > size - 18:
        raise DamageError("structure", f"its footer would be {length:,} bytes long", size - 10)
    return True


def _opened(file: SourceFile, is_file: bool) -> Any:
    import pyarrow.ipc

    options = pyarrow.ipc.IpcReadOptions(use_threads=False)
    return pyarrow.ipc.open_file(file, options=options) if is_file else pyarrow.ipc.open_stream(file, options=options)


def _batches(reader: Any, look: Look | None) -> Iterator[tuple[int, Any]]:
    count = getattr(reader, "num_record_batches", None)
    number = 0
    while count is None or number < count:
        if look is None or look.at(f"batch {number}"):
            try:
                yield number, reader.read_next_batch() if count is None else reader.get_batch(number)
            except StopIteration:
                return
        elif count is None:
            return
        number += 1


def _check(reader: Any, file: SourceFile, look: Look) -> None:
    group = group_of(look.piece.path)
    tell_schema(((field.name, str(field.type)) for field in reader.schema), look, group)
    names = reader.schema.names
    columns = [Column(name, look, group) for name in names[: columns_to_check(len(names), look)]]
    try:
        for number, batch in _batches(reader, look):
            for index, column in enumerate(columns):
                try:
                    column.add(batch.column(index), look.records)
                except _READ as error:
                    tell_error(error, file, look, record=look.records, member=f"batch {number}")
            look.records += batch.num_rows
    finally:
        for column in columns:
            column.tell()


def _check_end(source: Source, position: int, size: int) -> None:
    """A stream ends with a mark. Programs that died did not write it, nor what should have come before it."""
    if source.read(max(position - 8, 0), 8) != END:
        raise DamageError("truncated", "the mark of its end is missing", position)
    if position < size:
        raise DamageError("trailing", f"{size - position:,} bytes follow its end", position)
