"""Does an image decode, in full and without a complaint? With libjpeg (simplejpeg) and Pillow, where they are there.

Of a JPEG all data of all components are read; only brightness is made into pixels, at an eighth of the size. The rest
would cost a third more and find nothing: libjpeg has nothing to complain about after the codes have been read."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

from faultlens.data.images.record import Problem, Walked
from faultlens.safe_text import one_line

MAX_PIXELS = 1 << 27  # of all frames together; more are not decoded
SMALL = {"min_height": 1, "min_width": 1}  # for simplejpeg: the smallest scale that there is
# Complaints of libjpeg about data; others are about versions.
_DAMAGE = re.compile("corrupt|premature|inconsistent|truncated", re.IGNORECASE)


def decode(data: bytes, walked: Walked) -> list[Problem]:
    if walked.width * walked.height > MAX_PIXELS:
        return [Problem("oversized", f"{walked.width} × {walked.height} pixels are not decoded here", 0, "note")]
    try:
        return _decode(data, walked)
    except MemoryError:
        return [Problem("greedy", "there is not enough memory to decode it", 0)]


def missing() -> str:
    """What is said where nothing can decode; empty where all can."""
    absent = [name for name, module in (("simplejpeg", _simplejpeg()), ("Pillow", _pillow())) if module is None]
    return f"Images are not decoded without {' and '.join(absent)}: pip install 'faultlens[data]'." if absent else ""


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
            _load(image_module, data)
        except MemoryError:
            raise
        except Exception as error:
            told = one_line(str(error) or type(error).__name__, 200)
            if told.startswith("Unsupported"):
                return [Problem("unsupported", f"Pillow does not decode it: {told}", 0)]
            return [Problem("decode", f"Pillow refuses it: {told}", 0)]
    complaints = {one_line(str(each.message), 200) for each in caught if each.category is UserWarning}
    return [Problem("garbage", f"Pillow says: {told}", 0) for told in sorted(complaints)]


def _load(image_module: Any, data: bytes) -> None:
    """All frames, of which an animation is bound to have as many as fit into the limit."""
    with image_module.open(io.BytesIO(data)) as image:
        frames = getattr(image, "n_frames", 1) if image.format in ("GIF", "PNG", "WEBP") else 1
        most = max(MAX_PIXELS // (image.width * image.height), 1)
        for number in range(min(frames, most)):
            if number:
                image.seek(number)
            image.load()


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
