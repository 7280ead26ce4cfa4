"""GIF: do its blocks follow each other to the trailer?"""

from __future__ import annotations

import struct

from faultlens.data.images.record import Broken, Problem, Walked, cut, oversized, trailing

MAGICS = (b"GIF87a", b"GIF89a")
SCREEN = struct.Struct("<HHBBB")
IMAGE = struct.Struct("<HHHHB")
EXTENSION, IMAGE_BLOCK, TRAILER = 0x21, 0x2C, 0x3B
MAX_CODE_SIZE = 8


def walk(data: bytes) -> Walked:
    problems: list[Problem] = []
    width = height = 0
    try:
        if len(data) < 6 + SCREEN.size:
            raise cut(len(data), "within its header")
        width, height, flags, _, _ = SCREEN.unpack_from(data, 6)
        first, end = _blocks(data, 6 + SCREEN.size + _palette(flags))
        if not width or not height:  # some writers leave the sizes to the first image
            width, height = first
        if data[end - 1] != TRAILER:  # nothing of the images is missing, and decoders do not mind
            problems.append(Problem("truncated", "its trailer is missing", end, "warning"))
        problems += oversized(width, height) + trailing(data, end)
    except Broken as broken:
        problems.append(broken.problem)
    return Walked("GIF", width, height, 3, tuple(problems))


def _palette(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _blocks(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    """The size of the first image, and where its trailer ends, or its last block if that is all there is."""
    size, first = len(data), None
    while position < size:
        block = data[position]
        if block == EXTENSION:
            position = _sub_blocks(data, position + 2)
        elif block == IMAGE_BLOCK:
            if position + 1 + IMAGE.size >= size:
                break
            _, _, width, height, flags = IMAGE.unpack_from(data, position + 1)
            if not width or not height:
                raise Broken("structure", f"an image in it has the size {width} × {height}", position)
            first = first or (width, height)
            start = position + 1 + IMAGE.size + _palette(flags)
            if start >= size:
                break
            if data[start] > MAX_CODE_SIZE:
                raise Broken("structure", "the data of an image in it begin with an impossible code size", start)
            position = _sub_blocks(data, start + 1)
        elif block == TRAILER:
            if first is None:
                raise Broken("structure", "it holds no image", position)
            return first, position + 1
        else:
            raise Broken("structure", "no block begins where one should", position)
    if first is not None and position == size:
        return first, size
    raise cut(size, "before its trailer")


def _sub_blocks(data: bytes, position: int) -> int:
    """Behind the empty one that ends them; behind the data where there is none."""
    size = len(data)
    while position < size and (length := data[position]):
        position += 1 + length
    return position + 1
