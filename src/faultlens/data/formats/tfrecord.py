"""TFRecord: framing and checksums of every record, and what is in the Examples. Plain, GZIP or ZLIB."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from faultlens.data.formats.base import Format, Item
from faultlens.data.groups import group_of
from faultlens.data.look import Look, Wanted
from faultlens.data.native import HEADER, length_at
from faultlens.data.source import Source
from faultlens.data.tfrecord import examples
from faultlens.data.tfrecord.feed import WINDOW, PackedBytes, PlainBytes, Window
from faultlens.data.tfrecord.records import Records, spans
from faultlens.data.tfrecord.relations import Relations
from faultlens.records.scan import Kind, Piece, Place

SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record", ".records")
NO_END = 1 << 62
REBUILD = "install gcc, then faultlens again"


class TFRecord(Format):
    name = "TFRecord"
    suffixes = SUFFIXES

    def begins(self, head: bytes) -> bool:
        return length_at(head, 0) is not None

    def cuts(self, source: Source, size: int, wanted: int) -> list[int]:  # noqa: ARG002
        return list(range(wanted, size - wanted // 2, wanted))

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        window = _window(source, piece)
        records = Records(window, NO_END if piece.last else piece.end, look, length_of_file=piece.identity.size)
        if piece.start and not piece.forced:
            records.enter()
        look.entered = window.base
        _check(records, look)
        look.left = window.base

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        window = _window(source, piece)
        unheard = Look(piece, Wanted())
        limit = NO_END if piece.last else piece.end
        records = Records(window, limit, unheard, parse=False, length_of_file=piece.identity.size)
        if piece.start and not piece.forced:
            records.enter()
        yield from _items(records, piece.path)


class PackedTFRecord(Format):
    def check(self, source: Source, piece: Piece, look: Look) -> None:  # noqa: ARG002
        packed = PackedBytes(source)
        records = Records(Window(packed, 0), NO_END, look)
        _check(records, look)
        if packed.problem:
            kind: Kind = "truncated" if packed.cut_off else "checksum"
            look.flaw(kind, f"{packed.problem}: what follows is lost", record=look.records)
        elif packed.trailing:
            look.flaw("trailing", f"{packed.trailing:,} bytes follow the end of its compressed data")

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        yield from _items(
            Records(Window(PackedBytes(source), 0), NO_END, Look(piece, Wanted()), parse=False), piece.path
        )


class GzipTFRecord(PackedTFRecord):
    name = "TFRecord (GZIP)"
    suffixes = tuple(f"{suffix}{packed}" for suffix in SUFFIXES for packed in (".gz", ".gzip"))

    def begins(self, head: bytes) -> bool:
        return head[:2] == b"\x1f\x8b" and _unpacks_to_a_record(head)


class ZlibTFRecord(PackedTFRecord):
    name = "TFRecord (ZLIB)"
    suffixes = tuple(f"{suffix}{packed}" for suffix in SUFFIXES for packed in (".zz", ".zlib"))

    def begins(self, head: bytes) -> bool:
        return head[:1] == b"\x78" and int.from_bytes(head[:2], "big") % 31 == 0 and _unpacks_to_a_record(head)


def _window(source: Source, piece: Piece) -> Window:
    return Window(PlainBytes(source, piece.start), piece.start, min(WINDOW, piece.identity.size + HEADER))


def _check(records: Records, look: Look) -> None:
    group = group_of(look.piece.path)
    relations = Relations(look, group)
    for run in records.runs():
        if records.state.event_count or records.state.blob_count:
            examples.look_into(run, records.state, relations, look, group)
    relations.close()
    examples.sizes(records.state, look, group)
    if records.parsed:
        examples.describe(records.state, look, group)
    else:
        look.unchecked("what is in Examples", "faultlens was installed without a C compiler", REBUILD)
    look.records = int(records.state.record)


def _items(records: Records, path: str) -> Iterator[Item]:
    for run in records.runs():
        for record, begin, end in spans(run):
            place = Place(
                path=path, record=record, offset=run.window.base + begin - HEADER, size=end - begin + HEADER + 4
            )
            yield Item(place, "record", bytes(run.window.buffer[begin:end]))


def _unpacks_to_a_record(head: bytes) -> bool:
    try:
        return length_at(zlib.decompressobj(wbits=47).decompress(head, HEADER), 0) is not None
    except zlib.error:
        return False
