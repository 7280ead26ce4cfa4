"""Images: which kind is one, and is it whole? One module per kind knows, without decoding."""

from __future__ import annotations

from faultlens.data.images import bmp, gif, jpeg, png, webp
from faultlens.data.images.record import ImageKind, Walked

WALKS = {"JPEG": jpeg.walk, "PNG": png.walk, "GIF": gif.walk, "BMP": bmp.walk, "WebP": webp.walk}


def kind_of(head: bytes) -> ImageKind | None:
    """By how it begins: 64 bytes are enough."""
    if head.startswith(jpeg.MAGIC):
        return "JPEG"
    if head.startswith(png.MAGIC):
        return "PNG"
    if head.startswith(gif.MAGICS):
        return "GIF"
    if webp.begins(head):
        return "WebP"
    return "BMP" if bmp.begins(head) else None


def walk(data: bytes | memoryview) -> Walked | None:
    """None: no image. Never raises, whatever the bytes are."""
    data = bytes(data)
    kind = kind_of(data[:64])
    return WALKS[kind](data) if kind else None
