"""A sorted table of keys and values (LevelDB's format): the index file of a checkpoint."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from faultlens.model_files.crc32c import crc32c, masked
from faultlens.model_files.protobuf import WireError, varint
from faultlens.model_files.regular import UnreadError

MAGIC = 0xDB4775248B80FB57
FOOTER = 48
TRAILER = 5  # after each block: its kind of compression, and a checksum
PLAIN = 0  # kind of compression: TensorFlow writes no other
MAX_ENTRIES = 1_000_000
MAX_KEY = 1 << 16


class TableError(ValueError):
    """The bytes are no table, or a damaged one."""


def entries(table: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """All keys with their values; the checksum of every block is compared, as TensorFlow does."""
    read = 0
    try:
        for _, handle in _block_entries(_block(table, *_index(table))):
            offset, position = varint(handle, 0)
            size, _ = varint(handle, position)
            read += size + 1
            if read > len(table):
                raise TableError("its blocks overlap")
            yield from _block_entries(_block(table, offset, size))
    except WireError as error:
        raise TableError(str(error)) from error


def _index(table: memoryview) -> tuple[int, int]:
    footer = table[-FOOTER:]
    if len(footer) < FOOTER or int.from_bytes(footer[-8:], "little") != MAGIC:
        raise TableError("it does not end as a table does")
    _, position = varint(footer, 0)  # the handle of the block of extras, which nobody uses
    _, position = varint(footer, position)
    offset, position = varint(footer, position)
    size, _ = varint(footer, position)
    return offset, size


def _block(table: memoryview, offset: int, size: int) -> memoryview:
    if offset + size + TRAILER > len(table):
        raise TableError(f"a block of it ends at byte {offset + size + TRAILER}, the file at {len(table)}")
    content = table[offset : offset + size]
    kind, stored = struct.unpack("<BI", table[offset + size : offset + size + TRAILER])
    if masked(crc32c(table[offset : offset + size + 1])) != stored:
        raise TableError(f"the checksum of its block at byte {offset} does not match")
    if kind != PLAIN:
        raise TableError(f"its block at byte {offset} is compressed, which checkpoints are not")
    return content


def _block_entries(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Keys are stored without what they share with the one before."""
    if len(block) < 4:
        raise TableError("it has an empty block")
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))
    position, key = 0, b""
    for _ in range(MAX_ENTRIES):
        if position >= end:
            return
        shared, position = varint(block, position)
        own, position = varint(block, position)
        length, position = varint(block, position)
        if shared > len(key) or own > MAX_KEY or position + own + length > end:
            raise TableError("an entry of it is damaged")
        key = key[:shared] + bytes(block[position : position + own])
        position += own
        yield key, block[position : position + length]
        position += length
    raise UnreadError(f"a block has more than {MAX_ENTRIES} entries")
