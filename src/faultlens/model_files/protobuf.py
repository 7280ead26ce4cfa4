"""The wire format of protocol buffers: fields of a message, without its schema."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.model_files.regular import UnreadError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 2_000_000  # of one message: a graph has a field per node

Value = int | memoryview


class WireError(ValueError):
    """The bytes are no message, or end within one."""


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """(number, value) in the order of the file; groups, which nobody writes any more, are an error."""
    position, end = 0, len(message)
    for _ in range(MAX_FIELDS):
        if position >= end:
            return
        key, position = varint(message, position)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError(f"it has no field at byte {position}")
        if kind == VARINT:
            value, position = varint(message, position)
            yield number, value
            continue
        if kind == BYTES:
            length, position = varint(message, position)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise WireError(f"it has no field at byte {position}")
        if length > end - position:
            raise WireError(f"it ends {length - (end - position)} bytes too early")
        content = message[position : position + length]
        position += length
        yield number, content if kind == BYTES else int.from_bytes(content, "little")
    raise UnreadError(f"a message has more than {MAX_FIELDS} fields")


def varint(data: memoryview, position: int) -> tuple[int, int]:
    """The number at a position, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise WireError("it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
    raise WireError(f"it has no number at byte {position}")


def text(value: Value, limit: int = 200) -> str:
    return bytes(value[:limit]).decode("utf-8", "replace") if isinstance(value, memoryview) else str(value)
