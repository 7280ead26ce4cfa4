"""How far can the records of a compressed TFRecord file be read?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultlens.data.native import FOOTER, HEADER
from faultlens.data.source import Source
from faultlens.data.tfrecord.feed import Bytes, PackedBytes

BLOCK = 1 << 20


class Tail(NamedTuple):
    """The records behind the last gap."""

    records: int
    end: int  # of the last whole one
    problem: str  # why the compressed data end there, if they should not
    cut: bool  # the file ends too early, and what is there is sound


def tail(source: Source, start: int) -> Tail:
    """Lengths are believed: the scan has checked their checksums."""
    stream = PackedBytes(source)
    reader = Reader(stream)
    count, position = 0, start
    if reader.skip(start) == start:
        while len(header := reader.read(HEADER)) == HEADER:
            rest = int.from_bytes(header[:8], "little") + FOOTER
            if reader.skip(rest) < rest:
                break
            count, position = count + 1, position + HEADER + rest
    return Tail(count, position, stream.problem, stream.cut_off)


class Reader:
    """Reads and skips in bounded memory, a block at a time."""

    def __init__(self, stream: Bytes) -> None:
        self._stream = stream
        self._block = memoryview(bytearray(BLOCK))
        self._at = self._end = 0

    def read(self, size: int) -> bytes:
        """Fewer bytes at the end; at most a block."""
        return b"".join(map(bytes, self._parts(min(size, BLOCK))))

    def skip(self, size: int) -> int:
        return sum(map(len, self._parts(size)))

    def _parts(self, size: int) -> Iterator[memoryview]:
        while size:
            if self._at == self._end:
                self._at, self._end = 0, self._stream.read_into(self._block)
            part = self._block[self._at : min(self._at + size, self._end)]
            if not part:
                return
            self._at += len(part)
            size -= len(part)
            yield part
