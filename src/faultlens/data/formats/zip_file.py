"""`.zip`: an archive of anything."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.data.formats.archives import check_inner
from faultlens.data.formats.base import Format, Item
from faultlens.data.formats.members import is_image
from faultlens.data.formats.zip_archive import check_zip, whole_members
from faultlens.data.formats.zip_directory import END, LOCAL
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place


class ZipFile(Format):
    name = "zip"
    suffixes = (".zip",)
    by_name_only = True  # documents and programs are zip archives, too

    def begins(self, head: bytes) -> bool:
        return head.startswith((LOCAL, END))

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        check_zip(source, piece.identity.size, look, "", check_inner)

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:
        for number, member, data in whole_members(source, piece.identity.size):
            if is_image(member.name, data):
                place = Place(
                    path=piece.path, record=number, offset=member.header, size=member.size, member=member.name
                )
                yield Item(place, "image", data)
