"""A part of a file that behaves like a whole one, so that HDF5 can write in the middle of an archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

BLOCK = 8 << 20


class Region:
    """From `start` to where its own end has come. Writes all or raises, also where the disk is nearly full."""

    def __init__(self, descriptor: int, start: int = 0, size: int = 0) -> None:
        self.descriptor = descriptor
        self.start = start
        self.size = size
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = self.write_at(self._position, data)
        self._position += size
        return size

    def write_at(self, position: int, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            done = os.pwrite(self.descriptor, left[:BLOCK], self.start + position)
            left, position = left[done:], position + done
        self.size = max(self.size, position)
        return size

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(self.size - self._position, 0)]
        done = 0
        while done < len(view):
            count = os.preadv(self.descriptor, [view[done : done + BLOCK]], self.start + self._position + done)
            if count == 0:
                break
            done += count
        self._position += done
        return done

    def read(self, size: int = -1) -> bytes:
        left = max(self.size - self._position, 0)
        buffer = bytearray(left if size < 0 else min(size, left))
        return bytes(buffer[: self.readinto(buffer)])

    def blocks(self, start: int = 0, size: int | None = None) -> Iterator[memoryview]:
        """Its content in pieces; each is overwritten by the next."""
        buffer = bytearray(BLOCK)
        end = self.size if size is None else start + size
        while start < end:
            count = os.preadv(self.descriptor, [memoryview(buffer)[: end - start]], self.start + start)
            if count == 0:
                return
            start += count
            yield memoryview(buffer)[:count]

    def truncate(self, size: int | None = None) -> int:
        self.size = self._position if size is None else size
        os.ftruncate(self.descriptor, self.start + self.size)
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""
