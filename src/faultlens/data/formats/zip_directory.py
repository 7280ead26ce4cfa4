"""What does the directory of a zip archive say, and do the members' own headers agree? Nothing is unpacked here."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.data.formats.reading import DamageError
from faultlens.data.source import Source

END, CENTRAL, LOCAL = b"PK\5\6", b"PK\1\2", b"PK\3\4"
_END = struct.Struct("<4s4H2IH")
_LOCATOR, _LOCATOR_MAGIC = struct.Struct("<4sIQI"), b"PK\6\7"
_END_64, _END_64_MAGIC = struct.Struct("<4sQ2H2I4Q"), b"PK\6\6"
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_SIGNATURE = b"PK\5\5"  # of the directory: behind the members
MAX_COMMENT = 0xFFFF
MAX_ENTRY = 1 << 18  # bytes of the directory: more than name, extra fields and comment can take
MAX_DIRECTORY = 1 << 30  # bytes: some ten million members
STREAMED, ENCRYPTED, UTF8 = 0x8, 0x1, 0x800
_FULL = 0xFFFFFFFF  # "see the long fields"


class Member(NamedTuple):
    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int  # bytes in the archive
    size: int  # bytes that it unpacks to
    header: int  # where its own header begins
    mode: int  # of the file system; 0 where it was not kept


class Directory(NamedTuple):
    start: int
    size: int
    members: int
    prefix: int  # bytes before the archive: offsets count from here
    trailing: int  # bytes behind the archive


def directory_of(source: Source, size: int) -> Directory:
    """From the end of the file. Raises DamageError."""
    found = _end(source, size)
    if found is None:
        if source.read(0, 2) == b"PK":
            raise DamageError("truncated", "the directory at the end of the archive is missing", size)
        raise DamageError("magic", "it is not a zip archive", 0)
    at, fields, trailing = found
    _, disk, first_disk, here, count, length, start, _ = fields
    end = at
    if _FULL in (length, start) or 0xFFFF in (disk, first_disk, here, count):
        long = _long_end(source, at)
        if long is not None:
            end, disk, first_disk, count, length, start = long
    if disk or first_disk:
        raise DamageError("unsupported", "it is one part of an archive in several files", at)
    prefix = end - length - start
    if prefix < 0:
        raise DamageError("truncated", f"its directory should end at byte {start + length}, and ends at {end}", at)
    # What stands before the archive belongs to the user (a program that unpacks itself). An archive before it is the
    # one that was cut off, within a member that is an archive.
    if prefix and source.read(0, 4) in (LOCAL, END):
        raise DamageError("truncated", f"its directory begins at byte {end - length} and should at {start}", at)
    if length > MAX_DIRECTORY or count * _CENTRAL.size > length:
        raise DamageError("structure", f"its directory of {length} bytes cannot have {count} members", at)
    return Directory(start + prefix, length, count, prefix, trailing)


def members_of(source: Source, directory: Directory) -> Iterator[Member]:
    """In the order of the directory. Raises DamageError where it is damaged."""
    position, end, number = directory.start, directory.start + directory.size, 0
    window, window_start = b"", position
    while position < end:
        if position + MAX_ENTRY > window_start + len(window) < end:
            window, window_start = source.read(position, min(1 << 20, end - position)), position
        entry = memoryview(window)[position - window_start :]
        if len(entry) < _CENTRAL.size:
            raise DamageError("truncated", "its directory ends within a member", position)
        fields = _CENTRAL.unpack_from(entry)
        magic, made_by, _, flags, method, _, _, crc, packed, size, named, extra, comment, _, _, attributes, header = (
            fields
        )
        if magic != CENTRAL:
            if magic == _SIGNATURE:
                break
            raise DamageError("structure", f"its directory has no member {number}", position)
        length = _CENTRAL.size + named + extra + comment
        if len(entry) < length:
            raise DamageError("truncated", "its directory ends within a member", position)
        raw = bytes(entry[_CENTRAL.size : _CENTRAL.size + named])
        extras = bytes(entry[_CENTRAL.size + named : _CENTRAL.size + named + extra])
        size, packed, header = _long_fields(extras, (size, packed, header))
        mode = attributes >> 16 if made_by >> 8 in (3, 19) else 0  # Unix, macOS
        name = raw.decode("utf-8" if flags & UTF8 else "cp437", "surrogateescape" if flags & UTF8 else "strict")
        yield Member(name, raw, flags, method, crc, packed, size, header + directory.prefix, mode)
        position += length
        number += 1
    if number != directory.members and number & 0xFFFF != directory.members:
        raise DamageError(
            "structure", f"its directory has {number} members and should have {directory.members}", position
        )


def data_of(source: Source, member: Member) -> int:
    """Where the packed bytes begin. Raises DamageError where the member's own header does not agree."""
    raw = source.read(member.header, _LOCAL.size)
    if len(raw) < _LOCAL.size:
        raise DamageError("truncated", "its header lies behind the end of the file", member.header)
    magic, _, flags, method, _, _, crc, packed, size, named, extra = _LOCAL.unpack(raw)
    if magic != LOCAL:
        raise DamageError("structure", "its header is not where the directory says", member.header)
    rest = source.read(member.header + _LOCAL.size, named + extra)
    if len(rest) < named + extra:
        raise DamageError("truncated", "its header goes beyond the end of the file", member.header)
    if rest[:named] != member.raw_name:
        raise DamageError("structure", "its header has another name than the directory", member.header)
    if method != member.method or (flags ^ member.flags) & ENCRYPTED:
        raise DamageError("structure", "its header says another way of packing than the directory", member.header)
    if not flags & STREAMED:  # otherwise it was not known yet
        size, packed, _ = _long_fields(rest[named:], (size, packed, 0))
        if (crc, packed, size) != (member.crc, member.packed, member.size):
            raise DamageError("structure", "its header says another size or checksum than the directory", member.header)
    return member.header + _LOCAL.size + int(named) + int(extra)


def _end(source: Source, size: int) -> tuple[int, tuple[int, ...], int] | None:
    """Where the end record begins, its fields, and how many bytes follow that belong to nothing."""
    start = max(0, size - MAX_COMMENT - _END.size)
    tail = source.read(start, size - start)
    candidates: list[tuple[int, tuple[int, ...], int]] = []
    at = tail.rfind(END)
    while at >= 0:
        if len(tail) - at >= _END.size:
            fields = _END.unpack_from(tail, at)
            beyond = len(tail) - at - _END.size - fields[7]
            if beyond == 0:
                return start + at, fields, 0
            candidates.append((start + at, fields, beyond))
        at = tail.rfind(END, 0, at + len(END) - 1) if at else -1
    if not candidates:
        return None
    at, fields, beyond = candidates[0]
    if beyond < 0:
        raise DamageError("truncated", f"its last {-beyond} bytes are missing, a part of its comment", size)
    return candidates[0]


def _long_end(source: Source, at: int) -> tuple[int, int, int, int, int, int] | None:
    """Of archives beyond 4 GB or 65535 members: where it begins, disks, members, size and place of the directory."""
    raw = source.read(at - _LOCATOR.size, _LOCATOR.size) if at >= _LOCATOR.size else b""
    if len(raw) < _LOCATOR.size or raw[:4] != _LOCATOR_MAGIC:
        return None
    stated = _LOCATOR.unpack(raw)[2]
    for place in (at - _LOCATOR.size - _END_64.size, stated):
        record = source.read(place, _END_64.size) if 0 <= place < at else b""
        if len(record) == _END_64.size and record[:4] == _END_64_MAGIC:
            _, _, _, _, disk, first_disk, _, count, length, start = _END_64.unpack(record)
            return place, disk, first_disk, count, length, start
    raise DamageError("structure", "the record of a long archive is missing at its end", at)


def _long_fields(extras: bytes, short: tuple[int, int, int]) -> tuple[int, int, int]:
    """Those of size, packed size and place that did not fit into 32 bits stand in an extra field, in this order."""
    position = 0
    while position + 4 <= len(extras):
        tag, length = struct.unpack_from("<HH", extras, position)
        if tag == 1:
            numbers = iter(
                struct.unpack_from(f"<{min(length, len(extras) - position - 4) // 8}Q", extras, position + 4)
            )
            size, packed, header = (next(numbers, each) if each == _FULL else each for each in short)
            return size, packed, header
        position += 4 + length
    return short
