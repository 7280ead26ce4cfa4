"""Where do the members of a tar archive begin and end, also behind a place where it is broken?"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from faultlens.data.gaps import Gap
from faultlens.data.quarantine.packed_records import Reader
from faultlens.data.tfrecord.feed import Bytes
from faultlens.records.scan import Flaw

BLOCK = 512
END_OF_TAR = bytes(2 * BLOCK)


class Member(NamedTuple):
    name: str  # nothing for a folder
    start: int  # of its first header
    end: int


class _File:
    """As much of a file as tarfile wants of a stream."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, size: int) -> bytes:
        return self._reader.read(size)


class MembersOfTar:
    """Iterate; then `end` says how far the archive could be read, and `lost` what could not."""

    def __init__(self, begin: Callable[[], Bytes], flaws: Sequence[Flaw]) -> None:
        self._begin = begin
        # Behind what was lost, members may begin again.
        places = [flaw.place for flaw in flaws if not flaw.place.member]
        self._entries = sorted(place.offset + place.size for place in places if place.offset is not None and place.size)
        self._broken = [place.offset for place in places if place.offset is not None and not place.size]
        self.end = 0
        self.lost = ""

    def __iter__(self) -> Iterator[Member]:
        yield from self._from(0)
        for entry in self._entries:
            if entry > self.end:
                yield from self._from(entry)
        if not self.lost and any(offset >= self.end for offset in self._broken):
            self.lost = f"What follows byte {self.end} is lost."  # tarfile takes a bad header for the end

    def _from(self, base: int) -> Iterator[Member]:
        reader = Reader(self._begin())
        if reader.skip(base) < base:
            return
        try:
            with tarfile.open(fileobj=_File(reader), mode="r|") as archive:  # type: ignore[call-overload]
                member = archive.next()
                while member is not None:
                    archive.members = []  # it would keep them all
                    name = "" if member.isdir() else member.name
                    found = Member(name, base + member.offset, base + archive.offset)
                    member = archive.next()  # goes over its data: they are there
                    self.end = found.end
                    yield found
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            self.lost = f"What follows byte {self.end} is lost: {error}."


def bad_parts(members: MembersOfTar, flaws: Sequence[Flaw], shown: Callable[[str], str]) -> list[Gap]:
    """`shown` gives the name of a member as flaws have it. Members of archives within count for the archive."""
    named: dict[str, list[int | None]] = {}
    for flaw in flaws:
        if flaw.place.member:
            named.setdefault(flaw.place.member, []).append(flaw.place.offset)
    around = archives_around(named)
    bad = [
        Gap(flaw.place.offset, flaw.place.offset + flaw.place.size)
        for flaw in flaws
        if not flaw.place.member and flaw.place.offset is not None and flaw.place.size
    ]
    for member in members:
        name = shown(member.name)
        places = named.get(name, [])
        # Of several members with one name, the one at that place.
        if name in around or any(place is None or member.start <= place < member.end for place in places):
            bad.append(Gap(member.start, member.end))
    return sorted(bad)


def archives_around(names: Iterable[str]) -> set[str]:
    """Every "a.tar" and "a.tar/b.zip" that "a.tar/b.zip/c" may be a member of."""
    return {name[:end] for name in names for end, letter in enumerate(name) if letter == "/"}
