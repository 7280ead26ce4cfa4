"""Passing over TFRecords quickly: a small C library, and the same in Python where there is none."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_uint32, c_uint64
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from faultlens.data.native import layout
from faultlens.data.native.layout import AT_LIMIT, BAD_DATA, BAD_LENGTH, NEED_MORE, StateC
from faultlens.model_files.crc32c import crc32c, masked

LIBRARY = Path(__file__).with_name("libfaultlens_records.so")
HEADER, FOOTER = 12, 4


class Walker(Protocol):
    """Looks at records in a buffer."""

    parses: bool  # it can look into Examples

    def walk(self, buffer: bytearray, size: int, base: int, state: StateC) -> int:
        """Passes over whole records from the beginning of the buffer, which lies `base` bytes into the file, and says
        how far it came; `state.stopped` says why not further."""

    def find(self, buffer: bytearray, size: int, begin: int, most: int) -> int:
        """The first place from `begin` on with a length of at most `most` whose checksum fits; `size` if none."""

    def crc(self, buffer: bytearray, begin: int, end: int, before: int = 0) -> int: ...


class NativeWalker:
    parses = True

    def __init__(self, library: ctypes.CDLL) -> None:
        self._walk, self._find, self._crc = library.fl_walk, library.fl_find, library.fl_crc32c
        self._walk.restype = self._find.restype = c_uint64
        self._crc.restype = c_uint32

    def walk(self, buffer: bytearray, size: int, base: int, state: StateC) -> int:
        return int(self._walk(_array(buffer), c_uint64(size), c_uint64(base), byref(state)))

    def find(self, buffer: bytearray, size: int, begin: int, most: int) -> int:
        return int(self._find(_array(buffer), c_uint64(size), c_uint64(begin), c_uint64(most)))

    def crc(self, buffer: bytearray, begin: int, end: int, before: int = 0) -> int:
        view = (c_char * (end - begin)).from_buffer(buffer, begin)
        return int(self._crc(c_uint32(before), view, c_uint64(end - begin)))


class PythonWalker:
    parses = False

    def walk(self, buffer: bytearray, size: int, base: int, state: StateC) -> int:
        at = 0
        state.stopped = NEED_MORE
        with memoryview(buffer) as view:
            while size - at >= HEADER:
                if base + at >= state.limit:
                    state.stopped = AT_LIMIT
                    break
                length = length_at(buffer, at)
                if length is None:
                    state.stopped = BAD_LENGTH
                    break
                end = at + HEADER + length
                if end + FOOTER > size:
                    break
                with view[at + HEADER : end] as data:
                    if masked(crc32c(data)) != int.from_bytes(buffer[end : end + FOOTER], "little"):
                        state.stopped = BAD_DATA
                        break
                state.sizes[length.bit_length()] += 1
                whole = HEADER + length + FOOTER
                if whole > state.largest.size:
                    state.largest.record, state.largest.offset, state.largest.size = state.record, base + at, whole
                state.record += 1
                at += whole
        return at

    def find(self, buffer: bytearray, size: int, begin: int, most: int) -> int:
        for at in range(begin, size - HEADER + 1):
            length = length_at(buffer, at)
            if length is not None and length <= most:
                return at
        return size

    def crc(self, buffer: bytearray, begin: int, end: int, before: int = 0) -> int:
        return crc32c(bytes(buffer[begin:end]), before)


def length_at(buffer: bytearray | bytes, at: int) -> int | None:
    """The length that stands here; None where its checksum does not fit."""
    raw = bytes(buffer[at : at + 8])
    if len(buffer) < at + HEADER or masked(crc32c(raw)) != int.from_bytes(buffer[at + 8 : at + HEADER], "little"):
        return None
    return int.from_bytes(raw, "little")


@lru_cache(maxsize=1)
def walker() -> Walker:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:  # no compiler was there
        return PythonWalker()
    library.fl_size_of_state.restype = c_uint64
    if library.fl_size_of_state() != ctypes.sizeof(layout.StateC) or not library.fl_prepare():
        return PythonWalker()
    return NativeWalker(library)


def _array(buffer: bytearray) -> ctypes.Array[c_char]:
    return (c_char * len(buffer)).from_buffer(buffer)
