"""Images that are files: one in each."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import ClassVar

from faultlens.data.formats.base import Format, Item
from faultlens.data.images import kind_of
from faultlens.data.images.checking import SUFFIXES, check_image
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place

MAX_SIZE = 256 << 20


class ImageFile(Format):
    name: ClassVar[str] = "image"
    suffixes: ClassVar[tuple[str, ...]] = tuple(SUFFIXES)

    def begins(self, head: bytes) -> bool:
        return kind_of(head) is not None

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        size = piece.identity.size
        if size > MAX_SIZE:
            look.flaw("unsupported", f"it has {size:,} bytes, more than are looked at in an image")
            return
        data = source.read(0, size)
        look.records = 1
        check_image(data, look, group=posixpath.dirname(piece.path))

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        size = piece.identity.size
        if 0 < size <= MAX_SIZE:
            yield Item(Place(path=piece.path, size=size), "image", source.read(0, size))
