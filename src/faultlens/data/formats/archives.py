"""Which kind of archive is in an archive? One may be looked into; more of them are not unpacked."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

from faultlens.data.formats.reading import DamageError, Read, Spot
from faultlens.data.formats.tar_archive import check_tar
from faultlens.data.formats.unpacking import HARMLESS, MAX_RATIO
from faultlens.data.formats.zip_archive import check_zip
from faultlens.data.look import Look
from faultlens.data.source import MemorySource
from faultlens.text.sizes import in_words

GZIP = b"\x1f\x8b"


class Gunzipped:
    """The bytes packed in a gzip file, one after another. Raises DamageError, and OSError where it cannot be read."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._size = file, size
        self._gzip = gzip.GzipFile(fileobj=io.BufferedReader(file, 1 << 18), mode="rb")
        self.count = 0

    def read(self, count: int) -> bytes:
        try:
            data = self._gzip.read(count)
        except EOFError as error:
            raise DamageError("truncated", "the packed data is cut off", self.count) from error
        except zlib.error as error:
            raise DamageError("structure", f"it cannot be unpacked: {error}", self.count) from error
        except gzip.BadGzipFile as error:
            if "CRC" in str(error):
                raise DamageError("checksum", "the checksum of the packed data does not fit", self.count) from error
            if self.count and "Not a gzipped file" in str(error):
                raise DamageError("trailing", "something that is not packed follows its end", self.count) from error
            raise DamageError("structure", f"it cannot be unpacked: {error}", self.count) from error
        self.count += len(data)
        if self.count > HARMLESS and self.count > MAX_RATIO * self._size:
            reason = f"{in_words(self._size)} unpack to more than {in_words(self.count)}: not unpacked further"
            raise DamageError("hostile", reason, self.count)
        return data


def check_inner(data: bytes, look: Look, spot: Spot) -> None:
    """An archive that is a member of one."""
    name, around = spot.member, f"{spot.member}/"
    records = look.records
    if data[:2] == b"PK" or name.lower().endswith((".zip", ".npz")):
        check_zip(MemorySource(name, data), len(data), look, around, _refuse)
    else:
        check_tar(tar_stream(io.BytesIO(data), len(data), data[:2]), look, around, _refuse)
    look.records = records  # those of the file itself count


def tar_stream(file: Any, size: int, head: bytes) -> Read:
    if head[:2] == GZIP:
        return Gunzipped(file, size).read
    return lambda count: bytes(file.read(count))


def _refuse(_: bytes, look: Look, spot: Spot) -> None:
    if spot.member.lower().endswith(".npz"):
        look.unchecked("what is in .npz files in archives", "they lie in an archive in an archive")
    else:
        reason = "it is an archive in an archive in an archive: not unpacked"
        look.flaw("hostile", reason, severity="warning", **spot.keywords())
