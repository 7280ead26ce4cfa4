"""What it costs to look at images, and how much damage is found: without decoding, decoded strictly, by TensorFlow."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import measure as m
from measure import PROGRAMS, Bench, Table

ROUNDS, DAMAGES = 15, 300
WALK, PIXELS = 100.0, 1.3  # times as fast as tf.io.decode_jpeg
HEADER = (
    "", "size", "`tf.io.decode_jpeg`", "walk", "times as fast", "noise", "target", "", "`--pixels`", "times as fast",
    "target", "", "decoded to RGB at full size",
)  # fmt: skip
TEXT = """\
CPU seconds for one photo, in one process, in turns; twelve photos of each sort, of other sizes, five times over. They
are made of noise with the spectrum of photos. "Walk" is what `faultlens scan` does with each image, `--pixels` decodes
it besides, with libjpeg-turbo and strictly: all codes of all components are read, and brightness is made into pixels at
an eighth of the size, since nothing can go wrong behind the codes. The last column makes all pixels of them, which no
part of faultlens does: how many times as fast as TensorFlow the same library is then."""
FOUND_HEADER = ("", "damage", "walk", "`--pixels`", "`tf.io.decode_image`")
FOUND_TEXT = """\
One image of each sort, damaged {count} times in each way, behind its headers: cut off anywhere, one bit changed, one
block of the file system (4 KiB) replaced by zeros, and by bytes that are not its own. Each cell: how many are found. A
BMP is pixels and nothing else, so that nothing can be found in it; WebP has no checksums, and most of what is changed
decodes to other pixels, as do most single bits of a JPEG."""
DAMAGES_IN_WORDS = {"cut": "cut off", "a bit": "one bit", "zeros": "zeros", "another file": "other bytes"}


def run(bench: Bench) -> Table:
    numbers = _numbers(bench)["speed"]
    table = Table("Looking at JPEGs", TEXT, HEADER, data=numbers)
    table.rows = [_row(name, each["bytes"], each["seconds"]) for name, each in numbers.items()]
    return table


def found(bench: Bench) -> Table:
    numbers = _numbers(bench)["found"]
    table = Table("Damaged images", FOUND_TEXT.format(count=_damages(bench)), FOUND_HEADER, data=numbers)
    for kind, damages in numbers.items():
        for name, shares in damages.items():
            table.rows.append([kind, DAMAGES_IN_WORDS[name], *(_share(shares[way]) for way in shares)])
    return table


@lru_cache(1)
def _numbers(bench: Bench) -> dict[str, Any]:
    """For both tables."""
    rounds, damages = str(bench.rounds(ROUNDS)), str(_damages(bench))
    return m.numbers_of([bench.python, PROGRAMS / "images.py", rounds, damages])


def _damages(bench: Bench) -> int:
    return bench.scaled(DAMAGES)


def _row(name: str, size: float, seconds: m.Samples) -> list[str]:
    return [
        name,
        f"{size / 1000:.0f} kB",
        m.median_text(seconds[m.PLAIN], "ms", 1e3),
        m.median_text(seconds["walk"], "µs", 1e6, 0),
        m.span(m.ratio(seconds, m.PLAIN, "walk"), "", digits=0),
        m.span(m.ratio(seconds, m.AGAIN), ""),
        f"{WALK:.0f}",
        m.verdict(m.ratio(seconds, "walk"), 1 / WALK),
        m.median_text(seconds["pixels"], "ms", 1e3),
        m.span(m.ratio(seconds, m.PLAIN, "pixels"), ""),
        f"{PIXELS}",
        m.verdict(m.ratio(seconds, "pixels"), 1 / PIXELS),
        m.span(m.ratio(seconds, m.PLAIN, "full"), ""),
    ]


def _share(share: float) -> str:
    return "not decoded" if share < 0 else f"{share:.0%}"
