"""What is known of an image after its structure has been walked."""

from __future__ import annotations

from typing import Literal, NamedTuple

from faultlens.records.scan import Kind
from faultlens.records.severity import Severity

ImageKind = Literal["JPEG", "PNG", "GIF", "BMP", "WebP"]

MAX_PIXELS = 1 << 29  # TensorFlow refuses more
# What writers pad files with, and text tools append.
PADDING = b"\0\xff \t\r\n\x1a"


class Problem(NamedTuple):
    kind: Kind
    reason: str
    offset: int  # within the image
    severity: Severity | None = None  # that of its kind


class Walked(NamedTuple):
    """`width`, `height` and `channels` are 0 where the image does not tell."""

    kind: ImageKind
    width: int
    height: int
    channels: int
    problems: tuple[Problem, ...]


class Broken(Exception):  # noqa: N818 (no error of the program)
    """Nothing behind this problem can be made sense of."""

    def __init__(self, kind: Kind, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.problem = Problem(kind, reason, offset)


def cut(size: int, what: str) -> Broken:
    return Broken("truncated", f"it ends after {size} bytes, {what}", size)


def trailing(data: bytes, end: int) -> list[Problem]:
    """Bytes behind the end harm no decoder; padding is not worth a word."""
    if len(data) == end or not data[end:].strip(PADDING):
        return []
    return [Problem("trailing", f"{len(data) - end} bytes follow the end of the image", end, "warning")]


def oversized(width: int, height: int) -> list[Problem]:
    if width * height < MAX_PIXELS:
        return []
    return [Problem("oversized", f"{width} × {height} pixels are more than TensorFlow decodes", 0)]
