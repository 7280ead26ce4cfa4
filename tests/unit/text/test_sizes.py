"""Sizes, read from words and said in words."""

from __future__ import annotations

import re

import pytest

import places
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


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"), (812, "812 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (4096, "4 KiB"),
        (1_048_063, "1023 KiB"), (1_048_064, "1 MiB"), (1_048_575, "1 MiB"), (MIB, "1 MiB"), (MIB + 40_000, "1 MiB"),
        (1_500_000, "1.4 MiB"), (104_804_000, "99.9 MiB"), (104_850_000, "100 MiB"), (104_857_600, "100 MiB"),
        (1_073_741_823, "1 GiB"), (3 * GIB // 2, "1.5 GiB"), (1 << 70, "1024 EiB"), (1 << 400, "1048576 EiB"),
        (-3 * MIB, "-3 MiB"),
    ],
)  # fmt: skip
def test_sizes_are_said(size: int, words: str) -> None:
    assert in_words(size) == words


def test_more_is_never_said_to_be_less() -> None:
    """Around every limit at which the unit or the number of digits changes."""
    limits = [factor << power for power in range(10, 61, 10) for factor in (1, 10, 100, 1000, 1023)]
    sizes = sorted(limit + offset for limit in limits for offset in (-(limit >> 11), -1, 0, 1, limit >> 11))
    said = [from_words(in_words(size)) or 0 for size in sizes if size < 1 << 59]
    assert said == sorted(said)


def test_there_is_one_way_to_say_a_size() -> None:
    units = re.compile(r'"KiB", "MiB"')
    source = places.ROOT / "src" / "faultlens"
    assert [path.name for path in source.rglob("*.py") if units.search(path.read_text())] == ["sizes.py"]


def test_what_is_said_can_be_read() -> None:
    assert [from_words(in_words(size)) for size in (17, 64 * MIB, 3 * GIB // 2)] == [17, 64 * MIB, 3 * GIB // 2]
