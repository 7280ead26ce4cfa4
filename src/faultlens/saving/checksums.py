"""Checksums of several parts of a file in one reading of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from faultlens.model_files.crc32c import crc32c
from faultlens.saving.region import DiskFile


@dataclass
class Part:
    """A part of a file; `value` is its checksum when the file has been read."""

    start: int
    size: int
    value: int = 0


def read_all(file: DiskFile, parts: Iterable[Part]) -> int:
    """Read the file from the disk, and set the values. Returns the CRC-32C of the whole."""
    waiting = sorted(parts, key=lambda part: part.start, reverse=True)
    under_way: list[Part] = []
    whole = position = 0
    for block in file.blocks(0, file.size):
        data = bytes(block)
        whole = crc32c(data, whole)
        end = position + len(data)
        while waiting and waiting[-1].start < end:
            under_way.append(waiting.pop())
        for part in under_way:
            piece = data[max(part.start - position, 0) : part.start + part.size - position]
            part.value = crc32c(piece, part.value)
        under_way = [part for part in under_way if part.start + part.size > end]
        position = end
    return whole
