"""Which members does a tar archive have? Read as a stream, header by header; nothing is written anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.data.formats.reading import CHUNK, DamageError, Read
from faultlens.text.sizes import MIB

BLOCK = 512
MAX_EXTENDED = 16 * MIB  # bytes of one long name or one extended header
MAX_GLOBAL = 1000  # names in headers for all members
REGULAR, LINK, SYMLINK, DIRECTORY, SPARSE = b"0", b"1", b"2", b"5", b"S"
DEVICES = {b"3": "a device", b"4": "a device", b"6": "a pipe"}
WITHOUT_DATA = frozenset({LINK, SYMLINK, DIRECTORY, *DEVICES})
_LONG_NAME, _LONG_LINK, _EXTENDED, _SOLARIS, _GLOBAL = b"L", b"K", b"x", b"X", b"g"
_ZERO = bytes(BLOCK)
_OCTAL = re.compile(rb"[ \0]*([0-7]*)[ \0]*.*", re.DOTALL)
_PAX = re.compile(rb"(\d{1,20}) ([^=]+)=")


class Member(NamedTuple):
    name: str
    kind: bytes
    size: int  # bytes in the archive
    offset: int  # where its first header begins
    link: str
    sparse: bool  # its bytes in the archive are not its contents


class TarWalk:
    """Iterate over `members`; `read` gives the contents of the one at hand. Raises DamageError where it is cut off.

    Damaged headers are kept in `damages`, and the walk goes on behind them."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._left = 0  # bytes of the member at hand that were not read yet
        self.position = 0
        self.damages: list[DamageError] = []
        self.ended = False  # with the mark of an end
        self.lone = False  # with one half of it

    def members(self) -> Iterator[Member]:
        everywhere: dict[str, bytes] = {}
        extended: dict[str, bytes] = {}
        start: int | None = None
        while (block := self._header()) is not None:
            start = self.position - BLOCK if start is None else start
            kind, size = block[156:157], _number(block[124:136])
            if kind in (_LONG_NAME, _LONG_LINK, _EXTENDED, _SOLARIS, _GLOBAL):
                content = self._extension(size)
                if kind in (_LONG_NAME, _LONG_LINK):
                    extended["path" if kind == _LONG_NAME else "linkpath"] = content.split(b"\0", 1)[0]
                elif kind == _GLOBAL:
                    everywhere.update(_records(content, self.position))
                    if len(everywhere) > MAX_GLOBAL:
                        raise DamageError("structure", "it has too many headers for all members", self.position)
                    start = None
                else:
                    extended.update(_records(content, self.position))
                continue
            member = _member(block, {**everywhere, **extended}, start)
            self._sparse_map(block, member)
            self._left = -(-member.size // BLOCK) * BLOCK
            padding = self._left - member.size
            yield member
            self._skip(padding)
            extended, start = {}, None
        if start is not None:
            raise DamageError("truncated", "it ends before the member that an extended header is about", self.position)

    def read(self, count: int, padding: int = 0) -> bytes:
        """Of the member at hand. `padding`: bytes behind its contents."""
        data = self._exactly(min(count, self._left - padding), "within a member")
        self._left -= len(data)
        return data

    def contents(self, member: Member) -> Read:
        padding = -member.size % BLOCK
        return lambda count: self.read(count, padding)

    # ----------------------------------------------------------------------------------------- blocks

    def _header(self) -> bytes | None:
        """The next one that is in order; None at the end."""
        reported = False
        while True:
            block = self._read(BLOCK)
            self.position += len(block)
            if not block:
                return None
            if len(block) < BLOCK:
                raise DamageError("truncated", "it ends within the header of a member", self.position)
            if block == _ZERO:
                self.lone = True
                second = self._read(BLOCK)
                self.position += len(second)
                self.ended = second == _ZERO
                if len(second) < BLOCK or self.ended:
                    return None
                self.lone, block = False, second  # GNU tar goes on, too
            if _is_header(block):
                return block
            if not reported:
                reason = "the checksum of a header does not fit"
                self.damages.append(DamageError("checksum", reason, self.position - BLOCK))
                reported = True

    def _extension(self, size: int) -> bytes:
        if size > MAX_EXTENDED:
            raise DamageError("structure", f"it has an extended header of {size} bytes", self.position)
        padded = self._exactly(-(-size // BLOCK) * BLOCK, "within an extended header")
        return padded[:size]

    def _sparse_map(self, block: bytes, member: Member) -> None:
        """Of old GNU archives: blocks between the header and the data."""
        more = member.kind == SPARSE and block[482] != 0
        while more:
            more = self._exactly(BLOCK, "within a map of holes")[504] != 0

    def _skip(self, padding: int) -> None:
        while self._left:
            self.read(CHUNK)
            if self._left <= padding:
                self._exactly(self._left, "within a member")
                self._left = 0

    def _exactly(self, count: int, where: str) -> bytes:
        data = self._read(count) if count else b""
        while data and len(data) < count and (more := self._read(count - len(data))):
            data += more
        self.position += len(data)
        if len(data) < count:
            raise DamageError("truncated", f"it ends {where}", self.position)
        return data


def is_tar(head: bytes) -> bool:
    return len(head) >= BLOCK and head[:BLOCK] != _ZERO and _is_header(head[:BLOCK])


def _is_header(block: bytes) -> bool:
    stated = _OCTAL.match(block[148:156])
    if stated is None or not stated[1]:
        return False
    rest = block[:148] + b" " * 8 + block[156:]
    unsigned = sum(rest)
    signed = unsigned - 256 * sum(byte > 127 for byte in rest)  # of old Sun archives
    return int(stated[1], 8) in (unsigned, signed)


def _number(field: bytes) -> int:
    """Octal digits, or the two's complement of large numbers."""
    if field[0] in (0x80, 0xFF):
        return max(int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1, 0)
    match = _OCTAL.match(field)
    return int(match[1], 8) if match and match[1] else 0


def _member(block: bytes, extended: dict[str, bytes], start: int) -> Member:
    kind = block[156:157]
    kind = REGULAR if kind in (b"\0", b"7") else kind
    name, link = _text(block[:100]), _text(block[157:257])
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        name = prefix + b"/" + name
    name = extended.get("GNU.sparse.name", extended.get("path", name))
    if kind == REGULAR and name.endswith(b"/"):
        kind = DIRECTORY  # as the oldest archives have them
    stated = extended.get("size", b"")
    size = int(stated) if stated.isdigit() and len(stated) < 20 else _number(block[124:136])
    return Member(
        name=name.decode("utf-8", "surrogateescape"),
        kind=kind,
        size=0 if kind in WITHOUT_DATA else size,
        offset=start,
        link=extended.get("linkpath", link).decode("utf-8", "surrogateescape"),
        sparse=kind == SPARSE or any(key.startswith("GNU.sparse.") for key in extended),
    )


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def _records(content: bytes, position: int) -> dict[str, bytes]:
    """ "12 path=a/b\\n", one after another."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(content) and content[at]:
        match = _PAX.match(content, at, at + 1000)
        length = int(match[1]) if match else 0
        if match is None or not match.end() < at + length <= len(content) or content[at + length - 1] != 0x0A:
            raise DamageError("structure", "an extended header is damaged", position)
        found[match[2].decode("utf-8", "replace")] = content[match.end() : at + length - 1]
        at += length
    return found
