"""`.npy`: one array, whose header says how many bytes follow. `.npz`: a zip archive of such."""

from __future__ import annotations

from faultlens.data.formats.base import Format
from faultlens.data.formats.numpy_array import MAGIC, check_array
from faultlens.data.formats.reading import Spot, reader_of
from faultlens.data.formats.zip_file import ZipFile
from faultlens.data.groups import group_of
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece


class NumpyFile(Format):
    name = "NumPy array"
    suffixes = (".npy",)

    def begins(self, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def check(self, source: Source, piece: Piece, look: Look) -> None:
        check_array(reader_of(source), look, Spot(), group_of(piece.path))
        look.records = 1


class NumpyArchive(ZipFile):
    name = "NumPy archive"
    suffixes = (".npz",)
