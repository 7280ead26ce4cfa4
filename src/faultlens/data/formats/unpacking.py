"""How is a member of an archive unpacked piece by piece, whatever it claims?"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

from faultlens.data.formats.reading import CHUNK, DamageError
from faultlens.data.source import Source
from faultlens.text.sizes import GIB, MIB

STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14
# Zeros shrink a thousandfold in all honesty; only what also unpacks to a lot is meant to do harm.
MAX_RATIO = 1000
HARMLESS = GIB
MAX_DICTIONARY = 256 * MIB  # that LZMA may ask for


class Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...


class _Stored:
    eof = False
    needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:  # noqa: ARG002
        return data


class _Deflated:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


class _Lzma:
    """The properties stand before the data: version, their size, then what `lzma` calls filters."""

    def __init__(self) -> None:
        self._begin = b""
        self._inner: lzma.LZMADecompressor | None = None

    @property
    def eof(self) -> bool:
        return self._inner is not None and self._inner.eof

    @property
    def needs_input(self) -> bool:
        return self._inner is None or self._inner.needs_input

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._inner is None:
            self._begin += data
            if len(self._begin) < 9:
                return b""
            data = self._begin[9:]
            self._inner = self._made(self._begin)
        return self._inner.decompress(data, max_length)

    @staticmethod
    def _made(begin: bytes) -> lzma.LZMADecompressor:
        packed, dictionary = begin[4], int.from_bytes(begin[5:9], "little")
        if begin[2:4] != b"\5\0" or packed >= 225 or dictionary > MAX_DICTIONARY:
            raise lzma.LZMAError("unknown properties")
        rest, context = divmod(packed, 9)
        filters = {
            "id": lzma.FILTER_LZMA1,
            "dict_size": max(dictionary, 4096),
            "lc": context,
            "lp": rest % 5,
            "pb": rest // 5,
        }
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[filters])


METHODS: dict[int, Callable[[], Decompressor]] = {
    STORED: _Stored,
    DEFLATED: _Deflated,
    BZIP2: bz2.BZ2Decompressor,
    LZMA: _Lzma,
}


class Unpacked:
    """The bytes of a member, one after another, with their checksum. Raises DamageError."""

    def __init__(self, source: Source, start: int, packed: int, method: int) -> None:
        self._source, self._position, self._end = source, start, start + packed
        self._method = METHODS[method]()
        self._crc = self.count = 0

    def read(self, count: int) -> bytes:
        """Never more than `count` bytes."""
        parts: list[bytes] = []
        missing = count
        while missing > 0 and (part := self._next(missing)):
            parts.append(part)
            missing -= len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._crc = zlib.crc32(data, self._crc)
        self.count += len(data)
        return data

    def check_end(self, size: int, crc: int) -> None:
        """All of the rest is unpacked, up to what was stated."""
        while self.count <= size and self.read(min(CHUNK, size + 1 - self.count)):
            pass
        if self.count != size:
            more = "more than " if self.count > size else ""
            what = f"it unpacks to {more}{min(self.count, size)} bytes and should to {size}"
            raise DamageError("structure" if more else "short", what)
        if self._crc != crc:
            raise DamageError("checksum", "the checksum of its data does not fit")

    def _next(self, count: int) -> bytes:
        while not self._method.eof:
            packed = b""
            if self._method.needs_input:
                wanted = min(count if isinstance(self._method, _Stored) else 1 << 16, self._end - self._position)
                packed = self._source.read(self._position, wanted)
                if len(packed) < wanted:
                    raise DamageError("truncated", "its data goes beyond the end of the file")
                self._position += len(packed)
                if not packed:
                    return b""
            try:
                data = self._method.decompress(packed, count)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                raise DamageError("structure", f"it cannot be unpacked: {error}") from error
            if data:
                return data
        return b""
