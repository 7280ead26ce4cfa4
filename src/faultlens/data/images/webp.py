"""WebP: do its chunks fill what its header says, and do its bitstreams begin as they should?"""

from __future__ import annotations

import struct

from faultlens.data.images.record import Broken, Problem, Walked, cut, oversized, trailing

CHUNK = struct.Struct("<4sI")
HEADER = 12  # RIFF, size, WEBP
FRAME_HEADER = 16
EXTENDED, LOSSY, LOSSLESS, FRAME = b"VP8X", b"VP8 ", b"VP8L", b"ANMF"
HAS_ALPHA = 0x10


def begins(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def walk(data: bytes) -> Walked:
    problems: list[Problem] = []
    width = height = channels = 0
    try:
        size = int.from_bytes(data[4:8], "little") + 8
        if size > len(data):
            raise cut(len(data), f"and its header says {size}")
        if size < HEADER + CHUNK.size:
            raise Broken("structure", "its header says that it is empty", 4)
        chunks = _chunks(data, HEADER, size)
        width, height, channels = _picture(data, chunks)
        problems += oversized(width, height) + trailing(data, size)
    except Broken as broken:
        problems.append(broken.problem)
    return Walked("WebP", width, height, channels, tuple(problems))


def _chunks(data: bytes, position: int, end: int) -> list[tuple[bytes, int, int]]:
    """Name, start and end of each."""
    found = []
    while position < end:
        if position + CHUNK.size > end:
            raise Broken("structure", "its chunks do not fill it", position)
        name, length = CHUNK.unpack_from(data, position)
        start = position + CHUNK.size
        if start + length > end:
            raise Broken("structure", "a chunk is longer than what is left", position)
        found.append((name, start, start + length))
        position = start + length + (length & 1)
    return found


def _picture(data: bytes, chunks: list[tuple[bytes, int, int]]) -> tuple[int, int, int]:
    name, start, end = chunks[0]
    if name in (LOSSY, LOSSLESS):
        return _bitstream(data, name, start, end)
    if name != EXTENDED or end - start < 10:
        raise Broken("structure", "no image begins where one should", start)
    width = int.from_bytes(data[start + 4 : start + 7], "little") + 1
    height = int.from_bytes(data[start + 7 : start + 10], "little") + 1
    channels = 4 if data[start] & HAS_ALPHA else 3
    images = 0
    for name, start, end in chunks[1:]:
        if name in (LOSSY, LOSSLESS):
            _bitstream(data, name, start, end)
            images += 1
        elif name == FRAME:
            if end - start < FRAME_HEADER:
                raise Broken("structure", "a frame of its animation is damaged", start)
            inner = [each for each in _chunks(data, start + FRAME_HEADER, end) if each[0] in (LOSSY, LOSSLESS)]
            if not inner:
                raise Broken("structure", "a frame of its animation holds no image", start)
            _bitstream(data, *inner[0])
            images += 1
    if not images:
        raise Broken("structure", "it holds no image", HEADER)
    return width, height, channels


def _bitstream(data: bytes, name: bytes, start: int, end: int) -> tuple[int, int, int]:
    if name == LOSSLESS:
        bits = int.from_bytes(data[start + 1 : start + 5], "little")
        if end - start < 5 or data[start] != 0x2F or bits >> 29:
            raise Broken("structure", "its image data do not begin as they should", start)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, 4 if bits >> 28 & 1 else 3
    tag = int.from_bytes(data[start : start + 3], "little")
    if end - start < 10 or tag & 1 or data[start + 3 : start + 6] != b"\x9d\x01\x2a":  # a key frame has an even tag
        raise Broken("structure", "its image data do not begin as they should", start)
    if tag >> 5 > end - start - 10:
        raise Broken("structure", "the first part of its image data is longer than all of them", start)
    width, height = struct.unpack_from("<HH", data, start + 6)
    if not width & 0x3FFF or not height & 0x3FFF:
        raise Broken("structure", "its size is 0", start)
    return width & 0x3FFF, height & 0x3FFF, 3
