"""`.tar`, `.tar.gz`: archives, and shards of webdataset."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import ClassVar

from faultlens.data.formats.archives import GZIP, check_inner, tar_stream
from faultlens.data.formats.base import Format, Item
from faultlens.data.formats.members import WHOLE, is_companion, is_image
from faultlens.data.formats.reading import DamageError, Read, SourceFile
from faultlens.data.formats.tar_archive import check_tar
from faultlens.data.formats.tar_walk import BLOCK, REGULAR, TarWalk, is_tar
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place


class TarFile(Format):
    name = "tar"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)
    by_name_only = True  # packages and layers of containers are tar archives, too

    def begins(self, head: bytes) -> bool:
        return is_tar(head)

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        check_tar(_stream(source, piece), look, "", check_inner)

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        walk = TarWalk(_stream(source, piece))
        try:
            for number, member in enumerate(walk.members()):
                usable = member.kind == REGULAR and not member.sparse and not is_companion(member.name)
                if not usable or member.size > WHOLE:
                    continue
                data = walk.contents(member)(member.size)
                if is_image(member.name, data):
                    place = Place(
                        path=piece.path, record=number, offset=member.offset, size=member.size, member=member.name
                    )
                    yield Item(place, "image", data)
        except DamageError:
            return


class GzipTarFile(TarFile):
    name = "tar (gzip)"
    suffixes = (".tar.gz", ".tgz")

    def begins(self, head: bytes) -> bool:
        return head.startswith(GZIP) and is_tar(_unpacked(head))


def _stream(source: Source, piece: Piece) -> Read:
    size = piece.identity.size
    head = source.read(0, len(GZIP))
    packed = head == GZIP or (size > 0 and piece.path.lower().endswith((".gz", ".tgz")))
    file = SourceFile(source, size)
    return tar_stream(file if packed else io.BufferedReader(file, 1 << 18), size, GZIP if packed else head)


def _unpacked(head: bytes) -> bytes:
    """The first block."""
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, BLOCK)
    except zlib.error:
        return b""
