"""Healthy images of every kind: by Pillow where it writes them, by hand where it does not."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy
from PIL import Image, ImageCms

WIDTH, HEIGHT = 37, 29


def picture(mode: str = "RGB", width: int = WIDTH, height: int = HEIGHT, seed: int = 0) -> Image.Image:
    """Coarse patches under a slope, with some noise: something of everything that encoders meet."""
    chance = numpy.random.default_rng(seed)
    patches = chance.integers(0, 200, (height // 8 + 1, width // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)[:height, :width]
    slope = numpy.arange(width)[None, :, None] % 40
    pixels = (patches + slope + chance.integers(0, 12, (height, width, 3))).astype(numpy.uint8)
    image = Image.fromarray(pixels)
    if mode == "I;16":
        return Image.fromarray(pixels[..., 0].astype(numpy.uint16) * 257)
    if mode in ("RGBA", "LA"):
        image.putalpha(image.convert("L"))
    return image.convert(mode)


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def frames(form: str, mode: str = "RGB", **options: Any) -> bytes:
    first, *others = (picture(mode, seed=seed) for seed in range(3))
    return encoded(first, form, save_all=True, append_images=others, duration=40, **options)


def _profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _segment(code: int, payload: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, code, 2 + len(payload)) + payload


def jpegs() -> dict[str, bytes]:
    plain = encoded(picture(), "JPEG")
    thumbnail = _segment(0xE1, b"Exif\0\0" + encoded(picture(width=16, height=16), "JPEG"))
    made = {
        "baseline": plain,
        "progressive": encoded(picture(), "JPEG", progressive=True),
        "progressive grey": encoded(picture("L"), "JPEG", progressive=True),
        "optimised": encoded(picture(), "JPEG", optimize=True),
        "grey": encoded(picture("L"), "JPEG"),
        "CMYK": encoded(picture("CMYK"), "JPEG"),
        "restart blocks": encoded(picture(), "JPEG", restart_marker_blocks=1),
        "restart rows": encoded(picture(width=100, height=100), "JPEG", restart_marker_rows=1),
        "progressive restarts": encoded(picture(), "JPEG", progressive=True, restart_marker_blocks=2),
        "one pixel": encoded(picture(width=1, height=1), "JPEG"),
        "black": encoded(Image.new("RGB", (400, 300)), "JPEG", optimize=True),
        "profile": encoded(picture(), "JPEG", icc_profile=_profile()),
        "comment with an end": encoded(picture(), "JPEG", comment=b"\xff\xd9 and no end"),
        "thumbnail": plain[:2] + thumbnail + plain[2:],
        "fillers": plain[:2] + b"\xff\xff" + plain[2:],
        "padding inside": plain[:20] + bytes(6) + plain[20:],
    }
    for sampling in (0, 1, 2):
        for quality in (1, 75, 100):
            made[f"sampling {sampling}, quality {quality}"] = encoded(
                picture(), "JPEG", subsampling=sampling, quality=quality
            )
    return made


def png(width: int, height: int, packed: bytes, *, bits: int = 8, interlaced: bool = False) -> bytes:
    """A grey one."""
    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, interlaced)
    chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def interlaced() -> bytes:
    """In seven passes: first column, first row, steps."""
    values = numpy.arange(WIDTH * HEIGHT, dtype=">u2").reshape(HEIGHT, WIDTH)
    rows = b""
    for column, row, across, down in (
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
    ):  # fmt: skip
        rows += b"".join(b"\0" + each.tobytes() for each in values[row::down, column::across])
    return png(WIDTH, HEIGHT, zlib.compress(rows), bits=16, interlaced=True)


def pngs() -> dict[str, bytes]:
    made = {mode: encoded(picture(mode), "PNG") for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")}
    for bits in (1, 2, 4):
        made[f"palette of {bits} bits"] = encoded(picture().quantize(1 << bits), "PNG", bits=bits)
    made["transparent colour"] = encoded(picture(), "PNG", transparency=(1, 2, 3))
    made["transparent palette"] = encoded(picture("P"), "PNG", transparency=b"\0\x80\xff")
    made["profile"] = encoded(picture(), "PNG", icc_profile=_profile())
    made["interlaced"] = interlaced()
    made["animated"] = frames("PNG")
    return made


def bitmap(bits: int, *, compression: int = 0, pixels: bytes | None = None, masks: bytes = b"", down: int = 1) -> bytes:
    """What Pillow does not write: 2 and 16 bits, run lengths, rows from the top."""
    row = (WIDTH * bits + 31) // 32 * 4
    pixels = bytes(i % 251 for i in range(row * HEIGHT)) if pixels is None else pixels
    palette = bytes(4 << bits) if bits <= 8 else b""
    start = 14 + 40 + len(masks) + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, down * HEIGHT, 1, bits, compression, len(pixels), 0, 0, 0, 0)
    return struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start) + header + masks + palette + pixels


def bmps() -> dict[str, bytes]:
    runs = b"".join(bytes((WIDTH, row % 200)) + b"\0\0" for row in range(HEIGHT)) + b"\0\x01"
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    old = struct.pack("<2sIHHI", b"BM", 26 + 4 * 2, 0, 0, 26) + struct.pack("<IHHHH", 12, 1, 2, 1, 24) + bytes(8)
    return {
        **{mode: encoded(picture(mode), "BMP") for mode in ("1", "L", "P", "RGB", "RGBA")},
        **{f"{bits} bits": bitmap(bits) for bits in (1, 2, 4, 8, 16, 24, 32)},
        "masks": bitmap(16, compression=3, masks=masks),
        "run lengths": bitmap(8, compression=1, pixels=runs),
        "from the top": bitmap(24, down=-1),
        "old": old,
        "without the header of files": encoded(picture(), "DIB"),
    }


def gifs() -> dict[str, bytes]:
    return {
        **{mode: encoded(picture(mode), "GIF") for mode in ("1", "L", "P", "RGB")},
        "animated": frames("GIF", loop=0),
        "comment": encoded(picture("P"), "GIF", comment=b"some words"),
    }


def webps() -> dict[str, bytes]:
    return {
        "lossy": encoded(picture(), "WEBP"),
        "lossless": encoded(picture(), "WEBP", lossless=True),
        "alpha": encoded(picture("RGBA"), "WEBP"),
        "lossless alpha": encoded(picture("RGBA"), "WEBP", lossless=True),
        "animated": frames("WEBP"),
        "animated alpha": frames("WEBP", "RGBA", lossless=True),
        "profile": encoded(picture(), "WEBP", icc_profile=_profile()),
    }


def all_of_them() -> dict[str, tuple[str, bytes]]:
    """By a name: the suffix and the contents."""
    kinds = {".jpg": jpegs(), ".png": pngs(), ".bmp": bmps(), ".gif": gifs(), ".webp": webps()}
    return {f"{suffix[1:]} {name}": (suffix, data) for suffix, made in kinds.items() for name, data in made.items()}
