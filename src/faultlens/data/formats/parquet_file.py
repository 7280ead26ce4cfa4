"""Parquet: is the footer there, and can every column of every row group be read? Images in columns are looked at."""

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
from faultlens.text.sizes import MIB

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
FOOTER = "the footer"
BLOCK = 32 * MIB  # bytes of values at once
MAX_ROWS = 1 << 16  # at once
# Equal values take next to no room. A file with more values than this would keep its reader busy for hours.
HARMLESS, MAX_RATIO = 1 << 30, 1 << 20
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12, "BYTE_ARRAY": 16}


class ParquetFile(Format):
    name = "Parquet"
    suffixes = (".parquet", ".parq", ".pq")
    needs = ("pyarrow",)

    def begins(self, head: bytes) -> bool:
        return head.startswith((MAGIC, ENCRYPTED))

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        file = SourceFile(source, piece.identity.size)
        try:
            _check_ends(source, piece.identity.size)
            if look.at(FOOTER):
                _check_table(_opened(file), file, look)
        except DamageError as damage:
            look.flaw(damage.kind, damage.reason, offset=damage.offset)
        except ImportError:
            raise
        except Exception as error:
            tell_error(error, file, look, member=FOOTER)

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        file = SourceFile(source, piece.identity.size)
        try:
            _check_ends(source, piece.identity.size)
            table = _opened(file)
            for leaf in range(0 if _lies_elsewhere(table.metadata) else table.metadata.num_columns):
                described = table.metadata.schema.column(leaf)
                if described.physical_type == "BYTE_ARRAY" and described.logical_type.type == "NONE":
                    yield from _images(table, leaf, piece.path)
        except (DamageError, OSError, ValueError, NotImplementedError, TypeError, KeyError, MemoryError):
            file.raise_failure()


def _check_ends(source: Source, size: int) -> None:
    begin, end = source.read(0, 4), source.read(max(size - 8, 0), 8)
    if begin not in (MAGIC, ENCRYPTED):
        raise DamageError("magic", f"it does not begin with {MAGIC.decode()}", 0)
    if size < 12 or end[4:] not in (MAGIC, ENCRYPTED):
        raise DamageError("truncated", "the footer at its end is missing", size)
    if ENCRYPTED in (begin, end[4:]):
        raise DamageError("unsupported", "it is encrypted")
    length = int.from_bytes(end[:4], "little")
    if length > size - 12:
        raise DamageError("structure", f"its footer would be {length:,} bytes long", size - 8)


def _opened(file: SourceFile) -> Any:
    """Texts are kept as numbers of an entry in a dictionary: a long one that is repeated takes no room."""
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(file)
    leaves = (metadata.schema.column(index) for index in range(metadata.num_columns))
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file.seek(0)
    return pyarrow.parquet.ParquetFile(
        file, metadata=metadata, read_dictionary=texts, page_checksum_verification=True, buffer_size=MIB
    )


def _check_table(table: Any, file: SourceFile, look: Look) -> None:
    metadata, group = table.metadata, group_of(look.piece.path)
    look.records = metadata.num_rows
    leaves = [metadata.schema.column(index) for index in range(metadata.num_columns)]
    tell_schema(((leaf.path, _type(leaf)) for leaf in leaves), look, group)
    stated = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    if stated != metadata.num_rows:
        reason = f"its footer says {metadata.num_rows:,} rows, its row groups have {stated:,}"
        look.flaw("structure", reason, member=FOOTER)
    if _lies_elsewhere(metadata):
        look.records = 0
        look.note("it describes the row groups of other files")
        return
    for index, leaf in enumerate(leaves[: columns_to_check(len(leaves), look)]):
        _check_column(table, index, leaf.path, file, look, group)


def _lies_elsewhere(metadata: Any) -> bool:
    """The file `_metadata` of a folder of Parquet files."""
    return bool(metadata.num_row_groups and metadata.num_columns and metadata.row_group(0).column(0).file_path)


def _check_column(table: Any, index: int, name: str, file: SourceFile, look: Look, group: str) -> None:
    column = Column(name, look, group)
    start = 0
    for number in range(table.num_row_groups):
        rows = table.metadata.row_group(number).num_rows
        if look.at(f"row group {number}, column {name}"):
            try:
                done = 0
                for values in _batches(table, number, index):
                    column.add(values, start + done)
                    done += len(values)
                if done != rows:
                    raise DamageError("short", f"row group {number} has {done:,} of {rows:,} rows of it")
            except DamageError as damage:
                look.flaw(damage.kind, damage.reason, record=start, member=name)
            except ImportError:
                raise
            except Exception as error:
                tell_error(error, file, look, record=start, member=name)
        start += rows
    column.tell()


def _batches(table: Any, number: int, index: int) -> Iterator[Any]:
    """Of one column in one row group, few rows at a time."""
    chunk, rows = table.metadata.row_group(number).column(index), table.metadata.row_group(number).num_rows
    values = max(chunk.num_values, rows)
    if values > HARMLESS and values > MAX_RATIO * max(chunk.total_compressed_size, 1):
        raise DamageError("hostile", f"{chunk.total_compressed_size:,} bytes hold {values:,} values: not read")
    described = table.metadata.schema.column(index)
    size = max(chunk.total_uncompressed_size, values * WIDTHS.get(described.physical_type, described.length), 1)
    at_once = max(1, min(MAX_ROWS, BLOCK * max(rows, 1) // size))
    for batch in table.iter_batches(at_once, row_groups=[number], columns=[described.path], use_threads=False):
        yield batch.column(0)


def _images(table: Any, index: int, path: str) -> Iterator[Item]:
    name, start = table.metadata.schema.column(index).path, 0
    for number in range(table.num_row_groups):
        done = 0
        for values in _batches(table, number, index):
            for row, data in images_in(values, start + done):
                yield Item(Place(path=path, record=row, size=len(data), member=name), "image", data)
            done += len(values)
        start += table.metadata.row_group(number).num_rows


def _type(leaf: Any) -> str:
    """As it is stored, and what it means."""
    meaning = str(leaf.logical_type)
    return leaf.physical_type.lower() if meaning == "None" else f"{leaf.physical_type.lower()} {meaning}"
