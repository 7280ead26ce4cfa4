"""HDF5 files: the superblock says how long the file must be."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

from faultlens.model_files import code
from faultlens.model_files.keras_config import new_in_3
from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import opened, size_of

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MAX_VERSION = 3
UNDEFINED = 0xFF
OBJECT_HEADER = b"OHDR"  # of version 2; version 1 begins with its number
HEADERS = 1 << 16  # bytes at the start in which Keras writes the attributes of the whole file
MAX_TEXT = 16 << 20
HEAP, HEAP_SIGNATURE = struct.Struct("<4s4xQ"), b"GCOL"
HEAP_OBJECT = struct.Struct("<H6xQ")  # its number, its size

Read = Callable[[int, int], bytes]  # (offset, size) -> at most size bytes


def read(path: Path) -> Saved:
    size = size_of(path) or 0
    with opened(path) as file:

        def at(offset: int, length: int) -> bytes:
            if offset >= size:
                return b""
            file.seek(offset)
            return file.read(length)

        what = damage(at, size)
        version, config = ("", "") if what else (attribute(at, name) for name in ("keras_version", "model_config"))
    return Saved(
        path=path,
        kind="HDF5 file",
        files=1,
        size=size,
        weights=size,
        writers=(("Keras", version[:40]),) if version else (),
        new_in_keras_3=new_in_3(config),
        damages=(Damage(path, what),) if what else (),
        code=code.in_config(config) if config else (),
    )


def damage(read: Read, size: int) -> str | None:
    """What libhdf5 would refuse, in words; None for a file that it opens."""
    if size == 0:
        return "is empty: a save began and did not end"
    start = _superblock(read, size)
    if start is None:
        return "is no HDF5 file: it has no signature" if any(read(0, 8)) else "begins with zeros, not with a header"
    block = read(start, 96)
    if len(block) < 48:
        return f"ends at byte {size}, within its header"
    version = block[8]
    if version > MAX_VERSION:
        return f"has a header of unknown version {version}"
    width = block[13] if version < 2 else block[9]
    if width not in (2, 4, 8, 16, 32):
        return f"has a damaged header: addresses of {width} bytes"
    first = 24 if version == 0 else 28 if version == 1 else 12  # base address, another, end of file
    base = int.from_bytes(block[first : first + width], "little")
    end = block[first + 2 * width : first + 3 * width]
    if len(end) < width or end == bytes([UNDEFINED]) * width:
        return "has a header without an end: the save did not end"
    needed = int.from_bytes(end, "little")  # counted from the start of the file, unlike all other addresses
    if size < needed:
        return f"ends at byte {size}, its header says {needed}"
    # Base address, free space, end, driver, then the entry of the root group: its name, its place. Newer: its place.
    root = first + (5 if version < 2 else 3) * width
    begin = read(base + int.from_bytes(block[root : root + width], "little"), len(OBJECT_HEADER))
    if len(begin) == len(OBJECT_HEADER) and begin[0] != 1 and begin != OBJECT_HEADER:
        return "has no list of its contents: the save did not end"
    return None


def attribute(read: Read, name: str) -> str:
    """A text that h5py attached to the file: in a heap that the attribute leads to. Empty where none is found."""
    raw = name.encode() + b"\0"
    padded = re.escape(raw.ljust(-(-len(raw) // 8) * 8, b"\0"))
    # Its type (text of any length: 20 bytes, padded), its shape (one), then length, heap, number within the heap.
    match = re.search(padded + rb"\x19.{23}.{8}(.{16})", read(0, HEADERS), re.DOTALL)
    if match is None:
        return ""
    length, heap, wanted = struct.unpack("<IQI", match[1])
    head = read(heap, HEAP.size)
    if length > MAX_TEXT or len(head) < HEAP.size:
        return ""
    signature, size = HEAP.unpack(head)
    contents = read(heap, min(size, MAX_TEXT)) if signature == HEAP_SIGNATURE else b""
    position = HEAP.size
    while position + HEAP_OBJECT.size <= len(contents):
        number, size = HEAP_OBJECT.unpack_from(contents, position)
        position += HEAP_OBJECT.size
        if number == wanted:
            return contents[position : position + min(length, size)].decode("utf-8", "replace")
        if number == 0:  # the rest is free
            break
        position += -(-size // 8) * 8
    return ""


def _superblock(read: Read, size: int) -> int | None:
    """At 0, 512, 1024, 2048, …: whatever stands before belongs to the user."""
    offset = 0
    while offset < size:
        if read(offset, len(SIGNATURE)) == SIGNATURE:
            return offset
        offset = offset * 2 or 512
    return None
