"""Is every member of a zip archive whole, and would unpacking it do harm? Nothing is written anywhere."""

from __future__ import annotations

import stat
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from faultlens.data.formats.members import WHOLE, CheckArchive, check_member, escapes, is_companion
from faultlens.data.formats.reading import DamageError, Spot
from faultlens.data.formats.unpacking import HARMLESS, MAX_RATIO, METHODS, STORED, Unpacked
from faultlens.data.formats.zip_directory import ENCRYPTED, Directory, Member, data_of, directory_of, members_of
from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.text.file_names import to_text
from faultlens.text.sizes import in_words

MAX_NAMES = 1_000_000  # that are compared with each other
MAX_LINK = 4096


def check_zip(source: Source, size: int, look: Look, around: str, check_archive: CheckArchive) -> None:
    """`around`: the name of the archive within its own archive, with a slash, or nothing."""
    if not size:
        look.flaw("empty", "it is empty", member=around.rstrip("/"))
        return
    try:
        directory = directory_of(source, size)
        if directory.trailing:
            reason = f"{directory.trailing} bytes follow its end"
            look.flaw("trailing", reason, offset=size - directory.trailing, member=around[:-1], severity="warning")
        _check_members(source, directory, look, around, check_archive)
    except DamageError as damage:
        look.flaw(damage.kind, damage.reason, offset=damage.offset, member=around[:-1])


def _check_members(source: Source, directory: Directory, look: Look, around: str, check_archive: CheckArchive) -> None:
    # Two passes over the directory: of archives with millions of members, only these are kept.
    headers = array("Q", sorted(member.header for member in members_of(source, directory)))
    names: set[int] = set()
    unpacked = 0
    for number, member in enumerate(members_of(source, directory)):
        spot = Spot(record=number, offset=member.header, size=member.size, member=around + to_text(member.name))
        look.records += 1
        if hash(member.name) in names:
            look.flaw("duplicate", "another member has the same name", **spot.keywords())
        elif len(names) < MAX_NAMES:
            names.add(hash(member.name))
        unpacked += member.size
        if unpacked > HARMLESS and unpacked > MAX_RATIO * (directory.start + directory.size):
            reason = f"it and those before it would unpack to {in_words(unpacked)}: not unpacked"
            look.flaw("hostile", reason, **spot.keywords())
            return
        try:
            _check_one(source, member, _limit(headers, member, directory), look, spot, check_archive)
        except DamageError as damage:
            look.flaw(damage.kind, damage.reason, **spot.keywords())


def _check_one(source: Source, member: Member, limit: int, look: Look, spot: Spot, check_archive: CheckArchive) -> None:
    if escapes(member.name):
        look.flaw("hostile", "it would be written outside of the folder that it is unpacked to", **spot.keywords())
    start = data_of(source, member)
    if start + member.packed > limit:
        raise DamageError("hostile", "it overlaps with what follows in the archive")
    if member.size > HARMLESS and member.size > MAX_RATIO * member.packed:
        raise DamageError("hostile", f"{in_words(member.packed)} would unpack to {in_words(member.size)}: not unpacked")
    if member.flags & ENCRYPTED:
        raise DamageError("unsupported", "it is encrypted")
    if member.method not in METHODS:
        raise DamageError("unsupported", f"it is packed in a way that is unknown (method {member.method})")
    if member.method == STORED and member.packed != member.size:
        raise DamageError("structure", f"it takes {member.packed} bytes unpacked and should have {member.size}")
    if member.name.endswith("/") and not member.size:
        return
    content = Unpacked(source, start, member.packed, member.method)
    if stat.S_ISLNK(member.mode):
        _check_link(content.read(MAX_LINK), member, look, spot)
    else:
        check_member(content.read, member.size, look, spot, check_archive)
    content.check_end(member.size, member.crc)


def _check_link(target: bytes, member: Member, look: Look, spot: Spot) -> None:
    folder = member.name.rpartition("/")[0]
    if escapes(target.decode("utf-8", "surrogateescape"), folder):
        look.flaw("hostile", "it is a link that leads out of the archive", **spot.keywords())


def _limit(headers: array[int], member: Member, directory: Directory) -> int:
    """Where the next member begins, or the directory. Two that share a header overlap by it."""
    behind = bisect_right(headers, member.header)
    if behind > 1 and headers[behind - 2] == member.header:
        return member.header
    return headers[behind] if behind < len(headers) else directory.start


def whole_members(source: Source, size: int) -> Iterator[tuple[int, Member, bytes]]:
    """Number, entry and contents of those that are in order and not large."""
    try:
        for number, member in enumerate(members_of(source, directory_of(source, size))):
            usable = member.method in METHODS and not member.flags & ENCRYPTED and not stat.S_ISLNK(member.mode)
            if not usable or member.size > WHOLE or is_companion(member.name):
                continue
            try:
                content = Unpacked(source, data_of(source, member), member.packed, member.method)
                data = content.read(member.size)
                content.check_end(member.size, member.crc)
            except DamageError:
                continue
            yield number, member, data
    except DamageError:
        return
