"""Does an image decode, in full and without a complaint? With libjpeg (simplejpeg) and Pillow, where they are there.

Of a JPEG all data of all components are read; only brightness is made into pixels, at an eighth of the size. The rest
would cost a third more and find nothing: libjpeg has nothing to complain about after the codes have been read."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

from faultlens.data.images.record import ImageKind, Problem, Walked
from faultlens.text.safe import one_line

MAX_PIXELS = 1 << 27  # of all frames together; more are not decoded
SMALL = {"min_height": 1, "min_width": 1}  # for simplejpeg: the smallest scale that there is
# Complaints of libjpeg about data; others are about versions.
_DAMAGE = re.compile("corrupt|premature|inconsistent|truncated", re.IGNORECASE)


def decode(data: bytes, walked: Walked) -> list[Problem]:
    if walked.width * walked.height > MAX_PIXELS:
        return [Problem("unsupported", f"{walked.width} × {walked.height} pixels are not decoded here", 0)]
    try:
        return _decode(data, walked)
    except MemoryError:
        return [Problem("greedy", "there is not enough memory to decode it", 0)]


def missing(kind: ImageKind) -> str:
    """The library without which such images are not decoded, or not with all warnings; empty where it is there."""
    if kind == "JPEG":
        return "" if _simplejpeg() is not None else "simplejpeg"
    return "" if _pillow() is not None else "Pillow"


def _decode(data: bytes, walked: Walked) -> list[Problem]:
    simplejpeg = _simplejpeg() if walked.kind == "JPEG" else None
    if simplejpeg is None:
        return _with_pillow(data)
    colours = "CMYK" if walked.channels == 4 else "GRAY"
    try:
        simplejpeg.decode_jpeg(data, colours, strict=True, **SMALL)
    except ValueError as error:
        complaint = str(error)
    else:
        return []
    try:
        simplejpeg.decode_jpeg(data, colours, strict=False, **SMALL)
    except ValueError:
        refused = [Problem("decode", f"libjpeg refuses it: {one_line(complaint, 200)}", 0)]
        # It knows the usual ways of sampling only, others know more.
        return refused if _pillow() is None or _with_pillow(data) else []
    if not _DAMAGE.search(complaint):
        return []
    return [Problem("garbage", f"libjpeg says: {one_line(complaint, 200)}", 0)]


def _with_pillow(data: bytes) -> list[Problem]:
    if (image_module := _pillow()) is None:
        return []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            undecoded = _load(image_module, data)
        except MemoryError:
            raise
        except Exception as error:
            told = one_line(str(error) or type(error).__name__, 200)
            if told.startswith("Unsupported"):
                return [Problem("unsupported", f"Pillow does not decode it: {told}", 0)]
            return [Problem("decode", f"Pillow refuses it: {told}", 0)]
    complaints = {one_line(str(each.message), 200) for each in caught if each.category is UserWarning}
    problems = [Problem("garbage", f"Pillow says: {told}", 0) for told in sorted(complaints)]
    if undecoded:
        problems.append(Problem("unsupported", f"its last {undecoded:,} frames are not decoded here", 0))
    return problems


def _load(image_module: Any, data: bytes) -> int:
    """As many frames as fit into the limit; says how many do not."""
    with image_module.open(io.BytesIO(data)) as image:
        frames = getattr(image, "n_frames", 1) if image.format in ("GIF", "PNG", "WEBP") else 1
        most = max(MAX_PIXELS // (image.width * image.height), 1)
        for number in range(min(frames, most)):
            if number:
                image.seek(number)
            image.load()
        return int(max(frames - most, 0))


def _simplejpeg() -> Any:
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image
