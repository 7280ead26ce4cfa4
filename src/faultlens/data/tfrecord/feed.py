"""A window that moves over the bytes of a file, packed or not, forwards only and in bounded memory."""

from __future__ import annotations

import zlib
from typing import Protocol

from faultlens.data.source import Source

WINDOW = 1 << 20  # fits into the caches of a core
PACKED_STEP = 1 << 18


class Bytes(Protocol):
    def read_into(self, buffer: memoryview) -> int:
        """The next bytes; fewer than there is room for at the end alone."""


class PlainBytes:
    def __init__(self, source: Source, start: int) -> None:
        self._source, self._at = source, start

    def read_into(self, buffer: memoryview) -> int:
        count = self._source.read_into(self._at, buffer)
        self._at += count
        return count


class PackedBytes:
    """What is packed in a GZIP or ZLIB file. `problem` says why it ended where it should not."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0
        self._inflater = zlib.decompressobj(wbits=47)  # either header
        self._waiting = b""
        self.problem = ""
        self.cut_off = False
        self.trailing = 0  # bytes behind the end that are no further member

    def read_into(self, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer) and not self.problem:
            if self._inflater.eof and not self._next_member():
                break
            if not self._waiting:
                self._waiting = self._source.read(self._at, PACKED_STEP)
                self._at += len(self._waiting)
            if not self._waiting:
                self.problem, self.cut_off = "it ends in the middle of its compressed data", True
                break
            part = self._unpacked(len(self._waiting), len(buffer) - done)
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _unpacked(self, size: int, most: int) -> bytes:
        """What so many waiting bytes give. zlib throws away what it unpacked in the call that fails: then with fewer
        bytes, until all that comes before the damage is there."""
        before = self._inflater.copy()
        try:
            part = self._inflater.decompress(self._waiting[:size], most)
        except zlib.error as error:
            self._inflater = before
            if size > 1 or most > 1:
                return self._unpacked(size // 2, most) if size > 1 else self._unpacked(size, most // 2)
            self.problem = f"its compressed data are damaged ({_reason(error)})"
            return b""
        self._waiting = self._inflater.unconsumed_tail + self._waiting[size:]
        return part

    def _next_member(self) -> bool:
        """GZIP files may be joined end to end; zeros may fill up a block."""
        rest = self._inflater.unused_data + self._waiting
        if len(rest) < 2:
            more = self._source.read(self._at, PACKED_STEP)
            self._at += len(more)
            rest += more
        if not rest or not rest.strip(b"\0"):
            return False
        if rest[:2] != b"\x1f\x8b":
            self.trailing = len(rest) + max(self._source.identity().size - self._at, 0)
            return False
        self._inflater = zlib.decompressobj(wbits=47)
        self._waiting = rest
        return True


class Window:
    """`buffer[:have]` are the bytes of the file from `base` on."""

    def __init__(self, source: Bytes, base: int, size: int = WINDOW) -> None:
        self._source = source
        self._usual = size
        self.base = base
        self.buffer = bytearray(size)
        self.have = 0
        self.at_end = False

    def fill(self) -> None:
        if self.have < len(self.buffer) and not self.at_end:
            with memoryview(self.buffer) as view:
                room = len(view) - self.have
                count = self._source.read_into(view[self.have :])
            self.have += count
            self.at_end = count < room

    def drop(self, count: int) -> None:
        """Move on; what is left goes to the beginning."""
        with memoryview(self.buffer) as view:
            view[: self.have - count] = view[count : self.have]
        self.have -= count
        self.base += count
        if len(self.buffer) > self._usual >= self.have:
            del self.buffer[self._usual :]

    def hold(self, count: int) -> bool:
        """Have this many bytes, if there are so many."""
        if count > len(self.buffer):
            self.buffer.extend(bytes(count - len(self.buffer)))
        self.fill()
        return self.have >= count


def _reason(error: zlib.error) -> str:
    text = str(error)
    return text.partition(": ")[2] or text
