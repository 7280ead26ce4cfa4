"""Sizes, read from words and said in words."""

from __future__ import annotations

import pytest

from faultlens.text.sizes import GIB, MIB, from_words, in_words


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 * GIB), ("1.5 G", 3 * GIB // 2), ("512mi", 512 * MIB), ("7000MB", 7_000_000_000), ("4096", 4096),
        ("12 B", 12), ("100 bytes", 100),
    ],
)  # fmt: skip
def test_sizes_are_read(text: str, size: int) -> None:
    assert from_words(text) == size


@pytest.mark.parametrize("text", ["", "x", "-1", "1e9", "9" * 40, "7QB", "95%", "1 2"])
def test_what_is_no_size(text: str) -> None:
    assert from_words(text) is None


def test_what_is_said_can_be_read() -> None:
    assert [from_words(in_words(size)) for size in (17, 64 * MIB, 3 * GIB // 2)] == [17, 64 * MIB, 3 * GIB // 2]
