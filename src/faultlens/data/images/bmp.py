"""BMP: are there as many bytes as its headers ask for?"""

from __future__ import annotations

import struct
from typing import NamedTuple

from faultlens.data.images.record import Broken, Problem, Walked, cut, oversized, trailing

MAGIC = b"BM"
FILE = struct.Struct("<2sIHHI")  # magic, size, reserved twice, where the pixels are
OLD = struct.Struct("<IHHHH")  # size of the header, width, height, planes, bits
NEW = struct.Struct("<IiiHHIIiiII")  # …, compression, bytes of pixels, resolution twice, colours, important ones
PROFILE = struct.Struct("<II")  # where, how long
PROFILE_AT, PROFILE_HEADER = 112, 124
OLD_HEADER = 12
HEADERS = frozenset({OLD_HEADER, 16, 40, 52, 56, 64, 108, PROFILE_HEADER})
BITS = frozenset({1, 2, 4, 8, 16, 24, 32})
UNPACKED = frozenset({0, 3, 6})  # compressions that are none: pixels, with masks, with a mask for transparency
PACKED = frozenset({1, 2, 4, 5})  # run lengths, a JPEG, a PNG
MAX_SIDE = 1 << 24


class Header(NamedTuple):
    size: int
    width: int
    height: int
    bits: int
    compression: int = 0
    stated: int = 0  # bytes of pixels; may be 0 for plain ones
    colours: int = 0


def begins(head: bytes) -> bool:
    """With the header of files, or without, as some .dib files are. Two letters would be too little: text begins so."""
    if head[:2] == MAGIC:
        return int.from_bytes(head[FILE.size : FILE.size + 4], "little") in HEADERS
    if len(head) < NEW.size:
        return False
    size, _, _, planes, bits, compression, *_ = NEW.unpack_from(head)
    return size in HEADERS and planes == 1 and bits in BITS and compression in UNPACKED | PACKED


def walk(data: bytes) -> Walked:
    problems: list[Problem] = []
    width = height = channels = 0
    try:
        start, size, pixels = 0, 0, 0
        if data[:2] == MAGIC:
            start = FILE.size
            _, size, _, _, pixels = FILE.unpack_from(data)
        header = _header(data, start)
        width, height = header.width, header.height
        channels = 1 if header.bits <= 8 else 4 if header.bits == 32 else 3
        problems += oversized(width, height)
        problems += _pixels(data, header, start, pixels, size)
    except Broken as broken:
        problems.append(broken.problem)
    return Walked("BMP", width, height, channels, tuple(problems))


def _header(data: bytes, start: int) -> Header:
    size = int.from_bytes(data[start : start + 4], "little")
    if size not in HEADERS:
        raise Broken("structure", f"its header cannot have {size} bytes", start)
    if len(data) < start + size:
        raise cut(len(data), "within its header")
    if size == OLD_HEADER:
        _, width, height, planes, bits = OLD.unpack_from(data, start)
        header = Header(size, width, height, bits)
    else:
        _, width, high, planes, bits, *more = NEW.unpack(
            data[start : start + min(size, NEW.size)].ljust(NEW.size, b"\0")
        )
        header = Header(size, width, abs(high), bits, more[0], more[1], more[4])  # upside down: a negative height
    if not (0 < header.width <= MAX_SIDE and 0 < header.height <= MAX_SIDE):
        raise Broken("structure", f"its size of {header.width} × {header.height} is impossible", start)
    embedded = header.compression in (4, 5) and bits == 0
    if planes != 1 or not (bits in BITS or embedded) or header.compression not in UNPACKED | PACKED:
        raise Broken("structure", "its header is damaged", start)
    return header


def _pixels(data: bytes, header: Header, start: int, pixels: int, size: int) -> list[Problem]:
    if not pixels:
        masks = {3: 12, 6: 16}.get(header.compression, 0) if header.size == 40 else 0
        colours = header.colours or (1 << header.bits if header.bits <= 8 else 0)
        pixels = start + header.size + masks + colours * (3 if header.size == OLD_HEADER else 4)
    elif pixels < start + header.size:
        raise Broken("structure", "its pixels begin within its header", start)
    row = (header.width * header.bits + 31) // 32 * 4
    needed = row * header.height if header.compression in UNPACKED else header.stated
    end = max(pixels + needed, _profile(data, header, start))
    if end > len(data):
        raise cut(len(data), f"and its header asks for {end}")
    if size > len(data):
        reason = f"its header says that the file has {size} bytes, and it has {len(data)}"
        return [Problem("short", reason, 2, "note" if header.compression in UNPACKED else "warning")]
    return trailing(data, max(end, size))


def _profile(data: bytes, header: Header, start: int) -> int:
    """Where a colour profile ends that stands behind the pixels."""
    if header.size < PROFILE_HEADER:
        return 0
    offset, size = PROFILE.unpack_from(data, start + PROFILE_AT)
    return start + int(offset) + int(size) if offset and size else 0
