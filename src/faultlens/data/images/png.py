"""PNG: do its chunks follow each other to the end, and do their checksums fit?"""

from __future__ import annotations

import struct
from zlib import crc32

from faultlens.data.images.record import Broken, Problem, Walked, cut, oversized, trailing

MAGIC = b"\x89PNG\r\n\x1a\n"
CHUNK = struct.Struct(">I4s")
HEADER = struct.Struct(">IIBBBBB")
OVERHEAD = 12  # length, name, checksum
MAX_LENGTH = (1 << 31) - 1
MAX_PROBLEMS = 20
CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PALETTE = 3


def walk(data: bytes) -> Walked:
    problems: list[Problem] = []
    width = height = channels = 0
    try:
        width, height, colours = _header(data)
        channels = CHANNELS[colours]
        problems += oversized(width, height)
        transparent = _chunks(data, colours, problems)
        channels += transparent and colours in (2, PALETTE)
    except Broken as broken:
        problems.append(broken.problem)
    return Walked("PNG", width, height, channels, tuple(problems))


def _header(data: bytes) -> tuple[int, int, int]:
    start = len(MAGIC)
    if len(data) < start + CHUNK.size + HEADER.size + 4:
        raise cut(len(data), "within its header")
    length, name = CHUNK.unpack_from(data, start)
    if name != b"IHDR" or length != HEADER.size:
        raise Broken("structure", "it does not begin with a header", start)
    width, height, depth, colours, compression, filters, interlace = HEADER.unpack_from(data, start + CHUNK.size)
    if not (0 < width <= MAX_LENGTH and 0 < height <= MAX_LENGTH):
        raise Broken("structure", f"its size of {width} × {height} is impossible", start)
    if depth not in DEPTHS.get(colours, ()) or compression or filters or interlace > 1:
        raise Broken("structure", "its header is damaged", start)
    return width, height, colours


def _chunks(data: bytes, colours: int, problems: list[Problem]) -> bool:
    """Whether a chunk tells what is transparent."""
    view = memoryview(data)
    position, size = len(MAGIC), len(data)
    seen: set[bytes] = set()
    before = b""
    while True:
        if position + OVERHEAD > size:
            raise cut(size, "before its last chunk" if position == size else "within a chunk")
        length, name = CHUNK.unpack_from(data, position)
        end = position + OVERHEAD + length
        if not name.isalpha() or length > MAX_LENGTH:
            raise Broken("structure", "no chunk begins where one should", position)
        if end > size:
            raise cut(size, f"within a chunk {name.decode()}")
        if crc32(view[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            critical = name[:1].isupper()
            reason = f"the checksum of a chunk {name.decode()} does not fit"
            problems.append(Problem("checksum", reason, position, None if critical else "warning"))
            if len(problems) > MAX_PROBLEMS:
                raise Broken("structure", "there is more of the same", position)
        if name == b"IDAT":
            if name in seen and before != name:
                raise Broken("structure", "its image data are not in one piece", position)
            if colours == PALETTE and b"PLTE" not in seen:
                raise Broken("structure", "its palette is missing", position)
        elif name == b"IEND":
            break
        elif name == b"IHDR" and name in seen:
            raise Broken("structure", "it has a second header", position)
        seen.add(name)
        before = name
        position = end
    if b"IDAT" not in seen:
        raise Broken("structure", "it holds no image data", position)
    problems += trailing(data, end)
    return b"tRNS" in seen
