"""Puts the pieces of each file together again, and what was seen of all files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.data.look import MAX_LARGEST, MAX_PLACES, MAX_VALUES
from faultlens.records.scan import Checked, Flaw, Identity, Piece, Place, Seen, Trait, Unchecked

MAX_KEPT = 100_000  # flaws of a scan; of more the number alone is kept


class File(NamedTuple):
    format: str
    identity: Identity
    records: int
    notes: tuple[str, ...]


def misaligned(pieces: Sequence[Checked]) -> tuple[int, Piece] | None:
    """Each piece must begin where the one before it left off. One that does not mistook what lies inside of a record
    for a record, and is checked again from there: its number, and what is to be checked."""
    for number, (before, after) in enumerate(pairwise(pieces), 1):
        if before.left is not None and after.entered != before.left:
            end = max(after.piece.end, before.left)
            return number, replace(after.piece, start=before.left, end=end, forced=True)
    return None


class Merged:
    """Everything that was found in files that are finished."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.flaws: list[Flaw] = []
        # Flaws that were counted only, of each file.
        self.untold_errors: dict[str, int] = {}
        self.untold_warnings: dict[str, int] = {}
        self.records = self.bytes = self.decoded = 0
        self.traits: dict[tuple[str, str], Trait] = {}
        self.sizes: dict[str, dict[int, int]] = {}
        self.largest: dict[str, list[Place]] = {}
        self._unchecked: dict[tuple[str, str, str], Unchecked] = {}

    def add(self, pieces: Sequence[Checked]) -> None:
        """All of one file, in order."""
        before = 0
        notes: dict[str, None] = {}
        changed = False
        for checked in pieces:
            for flaw in checked.flaws:
                if flaw.kind != "changed" or not changed:
                    self.add_flaw(replace(flaw, place=_later(flaw.place, before)))
                changed = changed or flaw.kind == "changed"
            _count(self.untold_errors, checked.piece.path, checked.flaws_untold)
            _count(self.untold_warnings, checked.piece.path, checked.warnings_untold)
            for trait in checked.traits:
                self._add_trait(trait, before)
            for group, sizes in checked.sizes.items():
                known = self.sizes.setdefault(group, {})
                for bits, count in sizes.items():
                    known[bits] = known.get(bits, 0) + count
            for group, places in checked.largest.items():
                self._add_largest(group, (_later(place, before) for place in places))
            notes.update(dict.fromkeys(checked.notes))
            before += checked.records
            self.bytes += checked.piece.end - checked.piece.start
            self.decoded += checked.decoded
        self.records += before
        for each in dict.fromkeys(each for checked in pieces for each in checked.unchecked):
            self._add_unchecked(each)
        piece = pieces[0].piece
        self.files[piece.path] = File(piece.format, piece.identity, before, tuple(notes))

    @property
    def unchecked(self) -> tuple[Unchecked, ...]:
        return tuple(self._unchecked[key] for key in sorted(self._unchecked))

    def add_flaw(self, flaw: Flaw) -> None:
        if len(self.flaws) < MAX_KEPT:
            self.flaws.append(flaw)
        elif flaw.severity != "note":
            _count(self.untold_errors if flaw.severity == "error" else self.untold_warnings, flaw.place.path, 1)

    def _add_unchecked(self, new: Unchecked) -> None:
        """Files are added in any order."""
        key = (new.check, new.reason, new.advice)
        known = self._unchecked.get(key)
        if known is not None:
            new = replace(known, files=known.files + new.files, first=min(known.first, new.first))
        self._unchecked[key] = new

    def _add_trait(self, trait: Trait, before: int) -> None:
        key = (trait.group, trait.name)
        known = self.traits.get(key)
        values = dict(known.values) if known else {}
        for value, seen in trait.values.items():
            earlier = values.get(value, Seen(count=0))
            places = _first(earlier.places, [_later(place, before) for place in seen.places])
            values[value] = Seen(count=earlier.count + seen.count, places=places)
        varied = trait.varied or (known is not None and known.varied) or len(values) > MAX_VALUES
        self.traits[key] = replace(trait, values={} if varied else values, varied=varied)

    def _add_largest(self, group: str, places: Iterable[Place]) -> None:
        largest = self.largest.setdefault(group, [])
        largest.extend(places)
        largest.sort(key=lambda place: (-(place.size or 0), by_place(place)))
        del largest[MAX_LARGEST:]


def _count(counts: dict[str, int], path: str, more: int) -> None:
    if more:
        counts[path] = counts.get(path, 0) + more


def _first(known: tuple[Place, ...], more: list[Place]) -> tuple[Place, ...]:
    """Those that come first, in whatever order they are found."""
    if len(known) == MAX_PLACES:
        more = [place for place in more if by_place(place) < by_place(known[-1])]
    return tuple(sorted((*known, *more), key=by_place)[:MAX_PLACES]) if more else known


def by_place(place: Place) -> tuple[str, int, int, str]:
    return place.path, place.record or 0, place.offset or 0, place.member


def _later(place: Place, before: int) -> Place:
    """Its number in the file, and not in the piece."""
    return replace(place, record=place.record + before) if before and place.record is not None else place
