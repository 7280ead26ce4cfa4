"""TFRecord files for tests, written without TensorFlow."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from faultlens.data.aggregate.merge import Merged, misaligned
from faultlens.data.engine import plan
from faultlens.data.engine.checking import Signs, check
from faultlens.data.look import Wanted
from faultlens.model_files.crc32c import crc32c, masked

PLAIN = Wanted()
UNHEARD = Signs(lambda _: None, lambda: None)


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join((length, _checksum(length), data, _checksum(data)))


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", masked(crc32c(data)))


def file_of(records: Iterable[bytes]) -> bytes:
    return b"".join(map(framed, records))


def example(**features: object) -> bytes:
    """A tf.train.Example; values are bytes, or lists of float or of int."""
    return _field(
        1,
        b"".join(_field(1, _field(1, name.encode()) + _field(2, _feature(value))) for name, value in features.items()),
    )


def sequence_example(context: dict[str, object], lists: dict[str, list[object]]) -> bytes:
    inside = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, b"".join(_field(1, _feature(step)) for step in steps)))
        for name, steps in lists.items()
    )
    return example(**context) + _field(2, inside)


def _feature(value: object) -> bytes:
    if isinstance(value, bytes):
        return _field(1, _field(1, value))
    assert isinstance(value, list)
    if value and isinstance(value[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(value)}f", *value)))
    return _field(3, _field(1, b"".join(_varint(each) for each in value)))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def scanned(path: Path, data: bytes | None = None, piece_size: int = plan.PIECE, wanted: Wanted = PLAIN) -> Merged:
    """The file, checked in this process, piece by piece."""
    if data is not None:
        path.write_bytes(data)
    (found,) = plan.files([str(path)], piece_size)
    merged = Merged()
    if found.flaw is not None:
        merged.add_flaw(found.flaw)
    pieces = [check(piece, wanted, UNHEARD) for piece in found.pieces]
    while (again := misaligned(pieces)) is not None:
        pieces[again[0]] = check(again[1], wanted, UNHEARD)
    if pieces:
        merged.add(pieces)
    return merged
