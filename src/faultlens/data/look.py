"""Collects what the check of one piece sees, bounded however bad the file is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from faultlens.records.scan import Checked, Flaw, Kind, Piece, Place, Seen, Trait, Unchecked
from faultlens.records.severity import Severity
from faultlens.text.file_names import to_text
from faultlens.text.safe import one_line, shorten

MAX_FLAWS = 1000  # of one piece
MAX_VALUES = 16  # of one trait
MAX_PLACES = 20  # of one value
MAX_LARGEST = 5
MAX_NOTES = 20
MAX_ITEM = 1000  # characters, which a worker's mark has room for
# What is merely unlike the rest, or still usable; everything else is an error.
WARNINGS: frozenset[Kind] = frozenset(
    {"differs", "duplicate", "garbage", "label", "not-finite", "oversized", "written"}
)
NOTES: frozenset[Kind] = frozenset({"unsupported"})

Mark = Callable[[str], None]


class Wanted(NamedTuple):
    """What the user asked the formats for."""

    pixels: bool = False  # decode images in full, and strictly


def nothing(_: str) -> None:
    pass


class Look:
    def __init__(self, piece: Piece, wanted: Wanted, mark: Mark = nothing) -> None:
        """`mark` is told what is looked at next, so that it is known if the reader dies of it."""
        self.piece = piece
        self.wanted = wanted
        self.records = 0
        self.entered: int | None = None
        self.left: int | None = None
        self._mark = mark
        self._skip = frozenset(piece.skip)
        self._flaws: list[Flaw] = []
        self._untold: dict[Severity, int] = {"error": 0, "warning": 0, "note": 0}
        self._notes: list[str] = []
        self._unchecked: dict[Unchecked, None] = {}
        self._traits: dict[tuple[str, str], _Trait] = {}
        self._sizes: dict[str, dict[int, int]] = {}
        self._largest: dict[str, list[Place]] = {}

    def at(self, item: str) -> bool:
        """Before anything that native code reads: "member", "record 12". False: an earlier reader died of it."""
        item = shorten(to_text(item), MAX_ITEM)
        if item in self._skip:
            return False
        self._mark(item)
        return True

    def flaw(
        self,
        kind: Kind,
        reason: str,
        *,
        record: int | None = None,
        offset: int | None = None,
        size: int | None = None,
        member: str = "",
        severity: Severity | None = None,
    ) -> None:
        severity = severity or severity_of(kind)
        if len(self._flaws) >= MAX_FLAWS:
            self._untold[severity] += 1
            return
        place = self._place(record, offset, size, member)
        self._flaws.append(Flaw(kind=kind, severity=severity, place=place, reason=one_line(reason, 300)))

    def note(self, text: str) -> None:
        """Worth knowing about the file, and nothing wrong."""
        if len(self._notes) < MAX_NOTES and text not in self._notes:
            self._notes.append(one_line(text, 300))

    def unchecked(self, check: str, reason: str, advice: str = "") -> None:
        """A kind of check that is not made in this file, in the same words for all files: they are counted."""
        told = Unchecked(check=check, reason=one_line(reason, 300), advice=advice, first=self.piece.path)
        self._unchecked[told] = None

    def trait(
        self,
        name: str,
        value: str,
        *,
        count: int = 1,
        record: int | None = None,
        offset: int | None = None,
        size: int | None = None,
        member: str = "",
        group: str = "",
        share: float | None = None,
        usual: str = "",
        kind: Kind = "differs",
    ) -> None:
        """A property that should be the same everywhere; which value is odd is known when all have been seen."""
        key = (group, name)
        if key not in self._traits:
            self._traits[key] = _Trait(share, usual, kind)
        place = self._place(record, offset, size, member)
        self._traits[key].add(value, count, place)

    def _place(self, record: int | None, offset: int | None, size: int | None, member: str) -> Place:
        name = one_line(member, 200) if member else ""
        return Place(path=self.piece.path, record=record, offset=offset, size=size, member=name)

    def varied(self, name: str, group: str = "") -> None:
        """A property that has too many values for a rule."""
        if (group, name) not in self._traits:
            self._traits[group, name] = _Trait(None, "", "differs")
        self._traits[group, name].is_varied()

    def sizes_seen(self, bits: int, count: int, group: str = "") -> None:
        """So many records, of a size of so many bits."""
        known = self._sizes.setdefault(group, {})
        known[bits] = known.get(bits, 0) + count

    def largest_seen(self, place: Place, group: str = "") -> None:
        largest = self._largest.setdefault(group, [])
        if len(largest) < MAX_LARGEST or (place.size or 0) > (largest[-1].size or 0):
            largest.append(place)
            largest.sort(key=lambda each: -(each.size or 0))
            del largest[MAX_LARGEST:]

    def checked(self) -> Checked:
        return Checked(
            piece=self.piece,
            flaws=tuple(self._flaws),
            flaws_untold=self._untold["error"],
            warnings_untold=self._untold["warning"],
            records=self.records,
            entered=self.entered,
            left=self.left,
            traits=tuple(trait.record(group, name) for (group, name), trait in self._traits.items()),
            sizes=self._sizes,
            largest={group: tuple(places) for group, places in self._largest.items()},
            notes=tuple(self._notes),
            unchecked=tuple(self._unchecked),
        )


class _Trait:
    def __init__(self, share: float | None, usual: str, kind: Kind) -> None:
        self._share, self._usual, self._kind = share, usual, kind
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[Place]] = {}
        self._varied = False

    def add(self, value: str, count: int, place: Place) -> None:
        if value not in self._counts and len(self._counts) >= MAX_VALUES:
            self._varied = True
            return
        self._counts[value] = self._counts.get(value, 0) + count
        places = self._places.setdefault(value, [])
        if len(places) < MAX_PLACES:
            places.append(place)

    def is_varied(self) -> None:
        self._varied = True

    def record(self, group: str, name: str) -> Trait:
        values = {
            to_text(value): Seen(count=count, places=tuple(self._places[value]))
            for value, count in self._counts.items()
        }
        return Trait(
            name=to_text(name),
            group=group,
            share=self._share,
            usual=self._usual,
            kind=self._kind,
            values=values,
            varied=self._varied,
        )


def severity_of(kind: Kind) -> Severity:
    return "warning" if kind in WARNINGS else "note" if kind in NOTES else "error"
