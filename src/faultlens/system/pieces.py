"""A file read piece by piece, where it cannot be mapped: a limit on the address space, a file system that cannot."""

from __future__ import annotations

import os

PIECE = 1 << 20


class Pieces:
    """As much of a mapping as is needed to look into a file."""

    def __init__(self, file: int) -> None:
        self._file = os.dup(file)
        self._size = os.fstat(file).st_size

    def close(self) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        start, stop, _ = place.indices(self._size)
        parts = []
        while start < stop and (part := os.pread(self._file, min(stop - start, PIECE), start)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def find(self, text: bytes, start: int = 0, stop: int | None = None) -> int:
        start, stop, _ = slice(start, stop).indices(self._size)
        while start < stop:
            piece = self[start : min(start + PIECE + len(text) - 1, stop)]
            position = piece.find(text)
            if position >= 0:
                return start + position
            start += PIECE
        return -1
