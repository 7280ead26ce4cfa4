"""Is every member of a tar archive whole, and would unpacking it do harm? Samples of webdataset must be alike."""

from __future__ import annotations

import posixpath

from faultlens.data.formats.members import CheckArchive, check_class, check_member, escapes, is_companion
from faultlens.data.formats.reading import CHUNK, DamageError, Read, Spot
from faultlens.data.formats.tar_walk import DEVICES, LINK, REGULAR, SYMLINK, Member, TarWalk
from faultlens.data.groups import group_of
from faultlens.data.look import MAX_PLACES, MAX_VALUES, Look
from faultlens.text.file_names import to_text

BLOCKED = 1 << 20  # bytes: more zeros than tar pads an archive with
MAX_CLASS = 64  # bytes that the number of a class takes


def check_tar(read: Read, look: Look, around: str, check_archive: CheckArchive) -> None:
    """`around`: the name of the archive within its own archive, with a slash, or nothing."""
    walk = TarWalk(read)
    samples = _Samples()
    try:
        for number, member in enumerate(walk.members()):
            look.records += 1
            spot = Spot(record=number, offset=member.offset, size=member.size, member=around + to_text(member.name))
            _check_member(walk, member, look, spot, check_archive)
            samples.add(member, spot)
        _check_end(walk, read, look, around)
    except DamageError as damage:
        look.flaw(damage.kind, damage.reason, offset=damage.offset, member=around[:-1])
        samples.forget_last()
    for each in walk.damages:
        look.flaw(each.kind, each.reason, offset=each.offset, member=around[:-1])
    samples.tell(look)


def _check_member(walk: TarWalk, member: Member, look: Look, spot: Spot, check_archive: CheckArchive) -> None:
    folder = posixpath.dirname(member.name) if member.kind == SYMLINK else ""
    if escapes(member.name):
        look.flaw("hostile", "it would be written outside of the folder that it is unpacked to", **spot.keywords())
    elif member.kind in (LINK, SYMLINK) and escapes(member.link, folder):
        look.flaw("hostile", "it is a link that leads out of the archive", **spot.keywords())
    elif member.kind in DEVICES:
        look.flaw("hostile", f"it would be {DEVICES[member.kind]}", **spot.keywords())
    if member.sparse:
        look.unchecked("what is in members of tar archives", "they are sparse")
    if member.kind != REGULAR or member.sparse:
        return
    if member.name.endswith(".cls") and member.size <= MAX_CLASS and not is_companion(member.name):
        check_class(walk.contents(member)(member.size), look, spot)
    else:
        check_member(walk.contents(member), member.size, look, spot, check_archive)


def _check_end(walk: TarWalk, read: Read, look: Look, around: str) -> None:
    """Two blocks of zeros, and nothing but zeros behind them."""
    where = Spot(offset=walk.position, member=around[:-1]).keywords()
    if not walk.position:
        look.flaw("empty", "it is empty", **where)
    elif not walk.ended:
        half = walk.lone
        reason = "half of the mark of its end is missing" if half else "the mark of its end is missing"
        look.flaw("truncated", reason, severity="warning" if half else None, **where)
    else:
        length = 0
        while rest := read(CHUNK):
            length += len(rest)
            if rest.count(0) != len(rest):
                look.flaw("trailing", "something follows its end", severity="warning", **where)
                return
        if not look.records and length > BLOCKED:  # a file that was made as large as it should become, and no more
            look.flaw("empty", "there are zeros in it, and no files", severity="warning", **where)
        if length % 512:
            look.flaw("truncated", "the zeros behind its end are cut off", severity="warning", **where)


class _Samples:
    """Members with one name and different endings, one after another, are one sample."""

    def __init__(self) -> None:
        self._name, self._endings, self._spot = "", set[str](), Spot()
        self._seen: dict[str, tuple[int, list[Spot]]] = {}

    def add(self, member: Member, spot: Spot) -> None:
        folder, base = posixpath.split(member.name)
        stem, dot, ending = base.partition(".")
        if member.kind != REGULAR or not dot or not stem:
            return
        name = posixpath.join(folder, stem)
        if name != self._name:
            self._finish()
            self._name, self._spot = name, spot
        self._endings.add(ending.lower())

    def forget_last(self) -> None:
        """Where the archive is cut off."""
        self._endings = set()

    def tell(self, look: Look) -> None:
        """Only where most have more than one ending: this is what tells webdataset from any other archive."""
        self._finish()
        total = sum(count for count, _ in self._seen.values())
        usual = max(self._seen, key=lambda value: self._seen[value][0], default="")
        if " " not in usual or self._seen[usual][0] * 2 < total:
            return
        for value, (count, spots) in self._seen.items():
            for index, spot in enumerate(spots):
                many = count - len(spots) + 1 if index == len(spots) - 1 else 1
                group = group_of(look.piece.path)
                look.trait("set of files of one sample", value, count=many, group=group, **spot.keywords())

    def _finish(self) -> None:
        if self._endings:
            value = " ".join(sorted(self._endings))
            if value in self._seen or len(self._seen) < MAX_VALUES:
                count, spots = self._seen.get(value, (0, []))
                self._seen[value] = (count + 1, spots if len(spots) >= MAX_PLACES else [*spots, self._spot])
            self._endings = set()
