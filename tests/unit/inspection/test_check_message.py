"""The message of a failed check, found in the memory of a process that aborts for it."""

from __future__ import annotations

import struct
import time

from fake_memory import FakeMemory, mapping
from faultlens.inspection.check_message import check_message, logged_line

# As TensorFlow 2.21 left it.
EVENT = (
    b"\x12#tensorflow/core/framework/tensor.cc\x18\xe0\x08 \xb7\xae\x87\xe2\xca\x8a\xc4\xf4\x18(\xcc\x080\xb5y"
    b":\x102\x0eCheck failed: :\x9f\x00\n\x9c\x00limit <= dim0_size (4 vs. 3):\x032\x01 "
)
LINE = "F0000 00:00:1794983882.337146   15541 tensor.cc:1120] Check failed: limit <= dim0_size (4 vs. 3)"


def test_the_line_as_it_was_printed() -> None:
    assert logged_line(EVENT + bytes(2000)) == LINE
    assert logged_line(b"\x12\x7fnoise\x12" * 50 + EVENT) == LINE


def test_what_is_no_message() -> None:
    assert logged_line(b"") is None
    assert logged_line(b"Check failed: in a source file") is None
    assert logged_line(EVENT.replace(b"\x18\xe0\x08", b"\xff\xff\xff")) is None


def test_a_message_that_is_cut_off_anywhere() -> None:
    for size in range(len(EVENT)):
        line = logged_line(EVENT[:size])
        assert line is None or LINE.startswith(line)


def test_a_core_that_is_made_to_waste_time() -> None:
    """Every word of the stack points to bytes that look like the beginning of a message, again and again."""
    heap = (b"\x12\x01\x12" * 300 + b"Check failed: ") * 18
    stack = b"".join(struct.pack("<Q", 0x10000 + index) for index in range(2048))
    memory = FakeMemory({0x10000: heap, 0x900000: stack})
    began = time.process_time()
    assert check_message(memory, 0x900000, [mapping(0x10000, 0x10000 + len(heap), "rw-p")]) is None
    assert time.process_time() - began < 10
