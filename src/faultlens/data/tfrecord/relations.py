"""Whether what lies beside an image in its record follows it: its height and width, a mask, a label per pixel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypedDict

from faultlens.data.look import Look
from faultlens.records.scan import Kind

ENOUGH = 64  # images after which what does not hold is forgotten
MOST = 0.9
WORTH_A_RULE = 64  # values: fewer are equal by chance
HOLDS, FAILS = "as it should be", "not as it should be"
LABEL: Kind = "label"


class Numbers(TypedDict):
    """Where a record is."""

    record: int
    offset: int
    size: int


class Beside(NamedTuple):
    """A feature of the same record."""

    name: str
    kind: str
    length: int  # values
    size: int  # bytes, of strings
    first: int  # integer


class Relations:
    """Counts, over one piece, how often each relation holds. A rule is made of it when everything has been seen."""

    def __init__(self, look: Look, group: str) -> None:
        self._look, self._group = look, group
        self._counts: dict[str, list[int]] = {}
        self._forgotten: set[str] = set()
        self._images = 0
        self._first: tuple[int, str, tuple[int, int]] | None = None  # image of a record: its number, name and size

    @property
    def settled(self) -> bool:
        """Nothing holds: there is no need to look any more."""
        return self._images > ENOUGH and len(self._forgotten) == len(self._counts)

    def add_image(self, name: str, width: int, height: int, place: Numbers) -> None:
        """A second image in a record is often a mask, and as large as the first."""
        if self._first is None or self._first[0] != place["record"]:
            self._first = place["record"], name, (width, height)
        elif self._first[1] != name:
            one, other = sorted((self._first[1], name))  # features stand in any order
            relation = f"{one} and {other} are not of one size"
            if relation not in self._forgotten:
                self._count(relation, self._first[2] == (width, height), name, place)

    def add(self, image: str, width: int, height: int, channels: int, others: Iterable[Beside], place: Numbers) -> None:
        self._images += 1
        pixels = width * height
        for other in others:
            for relation, holds in _relations(image, other, width, height, channels, pixels):
                if relation not in self._forgotten:
                    self._count(relation, holds, other.name, place)

    def _count(self, relation: str, holds: bool, member: str, place: Numbers) -> None:
        counts = self._counts.setdefault(relation, [0, 0])
        counts[holds] += 1
        seen = sum(counts)
        if seen >= ENOUGH and counts[True] < MOST * seen:
            self._forgotten.add(relation)
            counts = [0, 0]
        if not holds or seen == 1:
            value = HOLDS if holds else FAILS
            self._look.trait(relation, value, group=self._group, usual=HOLDS, kind=LABEL, member=member, **place)

    def close(self) -> None:
        """Those that held were not told one by one."""
        for relation, (_, held) in self._counts.items():
            if held > 1:
                self._look.trait(relation, HOLDS, count=held - 1, group=self._group, usual=HOLDS, kind=LABEL)


def _relations(
    image: str, other: Beside, width: int, height: int, channels: int, pixels: int
) -> Iterable[tuple[str, bool]]:
    if other.kind == "int64" and other.length == 1:
        lower = other.name.lower()
        for word, measure in (("height", height), ("width", width), ("channels", channels)):
            if word in lower:
                yield f"{other.name} is not the {word} of {image}", other.first == measure
    elif other.kind in ("int64", "float") and other.length >= WORTH_A_RULE:
        yield f"{other.name} has not one value for each pixel of {image}", other.length == pixels
    elif other.kind == "bytes" and other.length == 1 and other.size >= WORTH_A_RULE:
        yield f"{other.name} has not one byte for each pixel of {image}", other.size == pixels
