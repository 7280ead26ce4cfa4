"""What abseil (hence TensorFlow) logged when a check failed, read from memory: where nobody kept what was printed.

The message that is being logged is an Event of abseil's logging.proto, which log_message.cc encodes piece by piece.
Whoever aborts for it has pointers to it on the stack."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice

from faultlens.inspection.maps import find
from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping

BEGINNING = b"Check failed: "
STACK_BYTES = 16 << 10
REACH = 16 << 10  # of a pointer: the buffer of abseil has 15,000 bytes
HEADER_BYTES = 1024  # before the text: the name of a source file, and numbers
MAX_FIELDS = 128
MAX_PLACES = 32  # that hold the words, and no message: a core file may be made to waste time

# The tags of Event's fields …
_FILE, _LINE, _TIME_NS, _SEVERITY, _THREAD, _VALUE = 0x12, 0x18, 0x20, 0x28, 0x30, 0x3A
_NUMBERS = (_LINE, _TIME_NS, _SEVERITY, _THREAD)
# … and of Value's: str and literal
_STRINGS = (0x0A, 0x32)


def check_message(memory: Memory, stack_pointer: int, mappings: Sequence[Mapping]) -> str | None:
    """The line as abseil prints it, if the thread with this stack is about to die of a check."""
    stack = memory.read(stack_pointer, STACK_BYTES)
    words = dict.fromkeys(word for (word,) in struct.iter_unpack("<Q", stack[: len(stack) // 8 * 8]))
    places = 0
    for word in words:
        mapping = find(mappings, word)
        if mapping is None or not mapping.permissions.startswith("rw"):
            continue
        data = memory.read(word, min(REACH, mapping.end - word))
        if BEGINNING not in data:
            continue
        line = logged_line(data)
        places += 1
        if line is not None or places == MAX_PLACES:
            return line
    return None


def logged_line(data: bytes) -> str | None:
    """Of the Event that is somewhere in these bytes."""
    text_at = data.find(BEGINNING)
    start = text_at
    while start > max(text_at - HEADER_BYTES, 0):
        start = data.rfind(bytes([_FILE]), 0, start)
        fields = list(islice(_fields(data, start), MAX_FIELDS)) if start >= 0 else []
        text = b"".join(_string(value) for tag, value in fields if tag == _VALUE and isinstance(value, bytes))
        numbers = {tag: value for tag, value in fields if isinstance(value, int)}
        if text.startswith(BEGINNING) and numbers.keys() >= set(_NUMBERS):
            name = str(fields[0][1], "utf-8", "replace").rpartition("/")[2]  # type: ignore[arg-type]
            seconds, rest = divmod(numbers[_TIME_NS], 10**9)
            said = text.decode("utf-8", "backslashreplace").strip()
            return f"F0000 00:00:{seconds}.{rest // 1000:06d} {numbers[_THREAD]:7d} {name}:{numbers[_LINE]}] {said}"
    return None


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int | bytes]]:
    while at < len(data):
        tag = data[at]
        number, at = _varint(data, at + 1)
        if tag in _NUMBERS:
            yield tag, number
        elif tag in (_FILE, _VALUE):
            yield tag, data[at : at + number]
            at += number
        else:
            return


def _string(value: bytes) -> bytes:
    length, at = _varint(value, 1)
    return value[at : at + length] if value[:1] in [bytes([tag]) for tag in _STRINGS] else b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number, and where the next field begins. Lengths are padded: they were reserved before they were known."""
    number = 0
    for index, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, at + index + 1
    return 0, len(data)
