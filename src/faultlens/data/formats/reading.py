"""How do walkers and libraries read a source, and where in it are they?"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

from faultlens.data.source import Source
from faultlens.records.scan import Kind

Read = Callable[[int], bytes]  # the next bytes; fewer than asked for at the end alone

CHUNK = 1 << 20


class DamageError(Exception):
    """What a walker cannot go on from."""

    def __init__(self, kind: Kind, reason: str, offset: int | None = None) -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason
        self.offset = offset


class Spot(NamedTuple):
    """Where in its file something lies; the keywords of `Look.flaw`."""

    record: int | None = None
    offset: int | None = None
    size: int | None = None
    member: str = ""

    def keywords(self) -> dict[str, Any]:
        return self._asdict()


class SourceFile(io.RawIOBase):
    """A source as a file for libraries that report trouble in their own way.

    They also turn an error of the disk into one of the data: `failure` keeps it, `at_end` tells whether the last
    bytes asked for were behind the end."""

    def __init__(self, source: Source, size: int) -> None:
        self._source, self._size = source, size
        self._position = 0
        self.failure: OSError | None = None
        self.at_end = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Room is made for no more than there is, whatever a file says."""
        left = max(self._size - self._position, 0)
        data = super().read(left if size < 0 else min(size, left))
        self.at_end = self.at_end or size > left
        return data or b""

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        try:
            count = self._source.read_into(self._position, view) if len(view) else 0
        except OSError as error:
            self.failure = error
            raise
        self._position += count
        self.at_end = count < len(view)
        return count

    def raise_failure(self) -> None:
        """The disk's own trouble is not the file's fault."""
        if self.failure is not None:
            raise self.failure


def reader_of(source: Source, start: int = 0) -> Read:
    """The bytes of a source one after another."""
    position = start

    def read(count: int) -> bytes:
        nonlocal position
        data = source.read(position, count)
        position += len(data)
        return data

    return read


def numbers_are(count: int) -> str:
    """How a sentence about some numbers of a file begins."""
    return "one of its numbers is" if count == 1 else f"{count:,} of its numbers are"
