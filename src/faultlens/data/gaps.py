"""Which parts of a TFRecord file are bad, and which runs of whole records lie between them?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from faultlens.records.scan import Flaw, Kind

END = 1 << 62  # of any file
ALL = -1  # records that there are
# Of compressed data, which then end early: what comes before is as good as ever.
_OF_PACKING: frozenset[Kind] = frozenset({"checksum", "trailing", "truncated"})


class Gap(NamedTuple):
    """Bytes to leave out. They count as one record."""

    start: int
    end: int
    record: int | None = None


class Run(NamedTuple):
    """Whole records in a row."""

    start: int
    records: int


def whole_file(flaws: Iterable[Flaw], packed: bool = False) -> bool:
    """Whether one of them has no place in the file."""
    return any(flaw.place.offset is None and not (packed and flaw.kind in _OF_PACKING) for flaw in flaws)


def gaps(flaws: Iterable[Flaw]) -> list[Gap]:
    """In order, each once; a flaw without a size reaches to the end."""
    found: dict[int, Gap] = {}
    for flaw in flaws:
        place = flaw.place
        if place.offset is None:
            continue
        gap = Gap(place.offset, place.offset + place.size if place.size else END, place.record)
        known = found.get(gap.start)
        if known is None or known.end < gap.end:
            found[gap.start] = gap
    joined: list[Gap] = []
    for gap in sorted(found.values()):
        if joined and gap.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, gap.end))
        else:
            joined.append(gap)
    return joined


def kept(gaps: Iterable[Gap], size: int) -> list[tuple[int, int]]:
    """What is left of so many bytes: from, to."""
    parts, position = [], 0
    for gap in gaps:
        if position < min(gap.start, size):
            parts.append((position, min(gap.start, size)))
        position = max(position, gap.end)
    if position < size:
        parts.append((position, size))
    return parts


def runs(gaps: list[Gap], size: int) -> list[Run] | None:
    """None where a gap has no number, so that nobody knows how many records lie before it."""
    found, start, record = [], 0, 0
    for gap in gaps:
        if gap.record is None or gap.record < record:
            return None
        if gap.record > record:
            found.append(Run(start, gap.record - record))
        start, record = gap.end, gap.record + 1
    if start < size:
        found.append(Run(start, ALL))
    return found
