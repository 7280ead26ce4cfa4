"""CSV: has every line as many columns as the others, and are columns of numbers numbers? As a stream."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.data.formats.base import Format, Item
from faultlens.data.formats.csv_check import Check
from faultlens.data.formats.csv_columns import is_number
from faultlens.data.formats.csv_records import blocks, cells, is_blank, learned
from faultlens.data.groups import group_of
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place

WIDE = (b"\xff\xfe", b"\xfe\xff")  # two bytes for a character


class CsvFile(Format):
    name = "CSV"
    suffixes = (".csv", ".tsv")
    by_name_only = True

    def begins(self, head: bytes) -> bool:
        return b"\0" not in head

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        size = piece.identity.size
        if source.read(0, 2) in WIDE:
            look.flaw("unsupported", "it is in UTF-16, which is not looked into")
            return
        dialect = learned(source, size, piece.path)
        if dialect.columns:
            look.trait("number of columns", str(dialect.columns), group=group_of(piece.path), share=0.5)
        else:
            look.unchecked("columns, quotes and numbers of CSV files", "their lines have different numbers of columns")
        check = Check(dialect, look)
        for block in blocks(source, size, dialect):
            check.add(block)
        check.tell()

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        size = piece.identity.size
        if source.read(0, 2) in WIDE:
            return
        dialect = learned(source, size, piece.path)
        first = True
        for block in blocks(source, size, dialect):
            offset = block.offset
            for number, record in enumerate(block.records, block.number):
                if not is_blank(record):
                    is_header = first and not any(map(is_number, cells(record, dialect)))
                    first = False
                    if not is_header and not block.too_long:
                        place = Place(path=piece.path, record=number, offset=offset, size=len(record))
                        yield Item(place, "line", record.removesuffix(b"\r"))
                offset += len(record) + len(dialect.line_end)
