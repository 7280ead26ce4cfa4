"""What is wrong with an image, wherever it lies: in a file, an archive, a feature of a record."""

from __future__ import annotations

from faultlens.data.images import pixels, walk
from faultlens.data.images.record import ImageKind, Problem, Walked
from faultlens.data.look import Look
from faultlens.data.missing import EXTRA

SUFFIXES: dict[str, ImageKind] = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "JPEG"),
    ".png": "PNG",
    ".gif": "GIF",
    **dict.fromkeys((".bmp", ".dib"), "BMP"),
    ".webp": "WebP",
}
CHANNELS = "number of channels"


def check_image(
    data: bytes,
    look: Look,
    *,
    record: int | None = None,
    offset: int | None = None,
    size: int | None = None,
    member: str = "",
    group: str = "",
) -> Walked | None:
    """Everything is said of the place that is given; where in the image something is wrong stands in the reason.

    None: no image, which is a flaw only where the name of the file or member promises one."""
    walked = walk(data)
    promised = claimed(member or look.piece.path)
    problems = [*_wrong_name(data, walked, promised), *(walked.problems if walked else ())]
    if walked and look.wanted.pixels:
        problems += _pixels(data, walked, look, f"pixels {'' if record is None else record} {member}")
    for problem in problems:
        look.flaw(
            problem.kind,
            _reason(problem, data),
            record=record,
            offset=offset,
            size=size,
            member=member,
            severity=problem.severity,
        )
    if walked and walked.channels and not problems:
        # What is not named like a file is a feature or a column, which has its own kind of images.
        trait = CHANNELS if promised or not member else f"{CHANNELS} of {member}"
        look.trait(trait, str(walked.channels), record=record, offset=offset, size=size, member=member, group=group)
    return walked


def _reason(problem: Problem, data: bytes) -> str:
    if 0 < problem.offset < len(data):
        return f"{problem.reason} (byte {problem.offset:,} of the image)"
    return problem.reason


def claimed(name: str) -> ImageKind | None:
    """What a name promises."""
    return next((kind for suffix, kind in SUFFIXES.items() if name.lower().endswith(suffix)), None)


def _wrong_name(data: bytes, walked: Walked | None, promised: ImageKind | None) -> list[Problem]:
    if promised is None or (walked and walked.kind == promised):
        return []
    if walked:  # decoders go by the contents
        return [Problem("magic", f"its name says {promised}, and it is a {walked.kind}", 0, "warning")]
    if not data:
        return [Problem("empty", "it is empty", 0)]
    if not any(data[:4096]):
        return [Problem("magic", f"its name says {promised}, and it begins with zeros", 0)]
    return [Problem("magic", f"its name says {promised}, and it does not begin like an image", 0)]


def _pixels(data: bytes, walked: Walked, look: Look, item: str) -> list[Problem]:
    if any(problem.kind in ("truncated", "structure") for problem in walked.problems):
        return []  # known to be of no use, and the more dangerous to decoders
    if absent := pixels.missing(walked.kind):
        look.unchecked(f"pixels of {walked.kind} images", f"{absent} is not installed", EXTRA)
    if not look.at(item.strip()):
        return []
    return pixels.decode(data, walked)
