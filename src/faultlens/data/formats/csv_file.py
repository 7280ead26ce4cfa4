"""CSV: has every line as many columns as the others?"""

from __future__ import annotations

from faultlens.data.formats.base import Format
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.scanned import Piece


class CsvFile(Format):
    name = "CSV"
    suffixes = (".csv", ".tsv")
    by_name_only = True

    def begins(self, head: bytes) -> bool:
        return b"\0" not in head

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        position = 0
        while block := source.read(position, min(1 << 22, piece.end - position)):
            look.records += block.count(b"\n")
            if b"\0" in block:
                look.flaw("structure", "it holds NUL bytes", offset=position + block.index(b"\0"))
            position += len(block)
        look.bytes = position
