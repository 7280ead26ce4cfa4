"""The message of a failed check, found in the memory of a process that aborts for it."""

from __future__ import annotations

from faultlens.inspection.check_message import logged_line

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
