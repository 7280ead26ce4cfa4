"""What is left of a file when the bad parts are taken out, written in bounded memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple, Protocol

from faultlens.data.gaps import Gap, gaps, kept, whole_file
from faultlens.data.quarantine.packed_records import BLOCK, Reader, tail
from faultlens.data.quarantine.tar_members import END_OF_TAR, MembersOfTar, archives_around, bad_parts
from faultlens.data.source import Source
from faultlens.data.tfrecord.feed import Bytes, PackedBytes, PlainBytes
from faultlens.records.scan import Flaw
from faultlens.text.file_names import to_text
from faultlens.text.safe import one_line

NAME_LIMIT = 200  # of members, as look.Look shortens them


class NoCopyError(Exception):
    """Why there is none, as a sentence."""


class Clean(NamedTuple):
    lost: str = ""  # more than the flaws say, as a sentence


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


Write = Callable[[Source, int, Sequence[Flaw], BinaryIO], Clean]


def write_clean(source: Source, size: int, format: str, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    writers: dict[str, Write] = {
        "TFRecord": _parts,
        "TFRecord (GZIP)": _packed_records(31),
        "TFRecord (ZLIB)": _packed_records(15),
        "tar": _tar,
        "tar (gzip)": _packed_tar,
        "zip": _zip,
        "CSV": _lines,
    }
    if format not in writers:
        raise NoCopyError("It is bad as a whole: there is no copy.")
    return writers[format](source, size, flaws, file)


def _parts(source: Source, size: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    if whole_file(flaws):
        raise NoCopyError("It is bad as a whole: there is no copy.")
    parts = kept(gaps(flaws), size)
    if not parts:
        raise NoCopyError("Nothing of it is whole: there is no copy.")
    _copy(PlainBytes(source, 0), parts, file.write)
    return Clean()


def _lines(source: Source, size: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    """A line is left out with its end, which the findings need not count in."""
    if whole_file(flaws):
        raise NoCopyError("It is bad as a whole: there is no copy.")
    bad = []
    for gap in gaps(flaws):
        behind = source.read(gap.end - 1, 3) if 0 < gap.end < size else b""
        ended = behind[:1] in (b"\n", b"\r")
        more = 0 if ended else 2 if behind[1:] == b"\r\n" else 1 if behind[1:2] in (b"\n", b"\r") else 0
        bad.append(Gap(gap.start, gap.end + more))
    _copy(PlainBytes(source, 0), kept(bad, size), file.write)
    return Clean()


def _packed_records(wbits: int) -> Write:
    def write(source: Source, _: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
        if whole_file(flaws, packed=True):
            raise NoCopyError("It is bad as a whole: there is no copy.")
        bad = gaps(flaws)
        rest = tail(source, bad[-1].end if bad else 0)
        parts = kept(bad, rest.end)
        if not parts:
            raise NoCopyError("Nothing of it is whole: there is no copy.")
        packer = zlib.compressobj(wbits=wbits)
        _copy(PackedBytes(source), parts, lambda data: file.write(packer.compress(data)))
        file.write(packer.flush())
        return Clean(f"What follows is lost: {rest.problem}." if rest.problem else "")

    return write


def _tar(source: Source, _: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    return _without_members(lambda: PlainBytes(source, 0), flaws, file.write)


def _packed_tar(source: Source, _: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    packer = zlib.compressobj(wbits=31)
    clean = _without_members(lambda: PackedBytes(source), flaws, lambda data: file.write(packer.compress(data)))
    file.write(packer.flush())
    return clean


def _without_members(begin: Callable[[], Bytes], flaws: Sequence[Flaw], write: Callable[[bytes], object]) -> Clean:
    members = MembersOfTar(begin, flaws)
    bad = bad_parts(members, flaws, _shown)
    parts = kept(bad, members.end)
    if not parts:
        raise NoCopyError("No member of it is whole: there is no copy.")
    _copy(begin(), parts, write)
    write(END_OF_TAR)
    return Clean(members.lost)


def _zip(source: Source, _: int, flaws: Sequence[Flaw], file: BinaryIO) -> Clean:
    if any(flaw.kind == "hostile" for flaw in flaws):
        raise NoCopyError("It would do harm: there is no copy.")
    bad = {flaw.place.member for flaw in flaws}
    bad |= archives_around(bad)
    unreadable: list[str] = []
    try:
        with source.file() as original, zipfile.ZipFile(original) as archive, zipfile.ZipFile(file, "w") as clean:
            for member in archive.infolist():
                name = _shown(member.filename)
                if name in bad:
                    continue
                if member.flag_bits & 1:
                    unreadable.append(name)
                    continue
                with archive.open(member) as reader, clean.open(_like(member), "w", force_zip64=True) as writer:
                    while data := reader.read(BLOCK):
                        writer.write(data)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError) as error:
        raise NoCopyError(f"It cannot be read any further: {one_line(str(error))}. There is no copy.") from error
    return Clean(f"Left out, because encrypted: {', '.join(unreadable[:5])}." if unreadable else "")


def _shown(name: str) -> str:
    """The name of a member as flaws have it."""
    return one_line(to_text(name), NAME_LIMIT)


def _like(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Its name, time, rights and way of packing."""
    copy = zipfile.ZipInfo(member.filename, member.date_time)
    copy.compress_type, copy.comment = member.compress_type, member.comment
    copy.external_attr, copy.create_system = member.external_attr, member.create_system
    return copy


def _copy(stream: Bytes, parts: list[tuple[int, int]], write: Callable[[bytes], object]) -> None:
    reader, position = Reader(stream), 0
    for start, end in parts:
        reader.skip(start - position)
        position = start
        while position < end:
            data = reader.read(end - position)
            if not data:
                raise NoCopyError("It became shorter while it was read: there is no copy.")
            write(data)
            position += len(data)
