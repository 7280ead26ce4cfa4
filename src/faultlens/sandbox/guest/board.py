"""The memory that a decoder's process shares with the scan: what there is to do, how far it has come, what it says.

Descriptors are only bells: what is true stands here, where no `close` or `write` of a decoder reaches it. Needs nothing
but the standard library, from Python 3.9 on, because the Python of the user's programs reads it as well."""

from __future__ import annotations

import mmap
import struct

# Words of eight bytes at its beginning. The scan writes the first three, the decoder's process the others.
BATCH, COUNT, FIRST, READY, AT, DONE, TRIED, SAID = range(8)
FAILED = 1  # in READY, instead of a process id: it cannot begin, and says why

ITEMS = 512  # of a batch
ENTRY = struct.Struct("<QQQ")  # where in the file of data, how many bytes, which of KINDS
KINDS = ("record", "image", "line")

TABLE = 64
SAYINGS = TABLE + ITEMS * ENTRY.size
SIZE = 2 << 20
MAX_SAYING = (SIZE - SAYINGS) // ITEMS


class Board:
    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, SIZE)
        self._whole = memoryview(self._map)
        self.words = self._whole[:TABLE].cast("Q")

    def put(self, index: int, offset: int, size: int, kind: int) -> None:
        ENTRY.pack_into(self._map, TABLE + index * ENTRY.size, offset, size, kind)

    def entry(self, index: int) -> tuple[int, int, int]:
        offset, size, kind = ENTRY.unpack_from(self._map, TABLE + index * ENTRY.size)
        return offset, size, kind

    def say(self, text: str) -> None:
        """One line. What is too long is the caller's fault, and left out."""
        line = text.encode("utf-8", "replace") + b"\n"
        start = SAYINGS + self.words[SAID]
        if len(line) <= MAX_SAYING and start + len(line) <= SIZE:
            self._whole[start : start + len(line)] = line
            self.words[SAID] += len(line)

    def said(self) -> list[bytes]:
        end = min(SAYINGS + self.words[SAID], SIZE)
        return bytes(self._whole[SAYINGS:end]).splitlines()

    def close(self) -> None:
        self.words.release()
        self._whole.release()
        self._map.close()
