"""Where /etc/ld.so.cache says that libraries are: the file that ldconfig writes and the loader looks into."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path("/etc/ld.so.cache")
MAX_BYTES = 64 << 20
FLAG_X8664_LIB64_LIBC6 = 0x303
HWCAP_EXTENSION = 1 << 62  # the entry lies in a glibc-hwcaps folder; the low bits say in which
EXTENSION_MAGIC = 0xEAA42174
EXTENSION_GLIBC_HWCAPS = 1
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")
_ENTRY = struct.Struct("<iIIIQ")
_SECTION = struct.Struct("<IIII")


@dataclass(frozen=True)
class Entry:
    path: str
    level: str | None  # "x86-64-v3": for CPUs of that level only


@dataclass(frozen=True)
class LoaderCache:
    entries: dict[str, tuple[Entry, ...]]

    def lookup(self, name: str, levels: Sequence[str]) -> str | None:
        """`levels` are those of the CPU, best first."""
        found = self.entries.get(name, ())
        for level in (*levels, None):
            for entry in found:
                if entry.level == level:
                    return entry.path
        return None


def read_cache(path: Path = CACHE) -> LoaderCache:
    """Without a cache, or with one that is damaged, the loader goes on to its default folders."""
    try:
        with path.open("rb") as file:
            return parse_cache(file.read(MAX_BYTES))
    except (OSError, struct.error):
        return LoaderCache({})


def parse_cache(data: bytes) -> LoaderCache:
    # ldconfig of older systems puts a table of an older format before this one.
    start = data.find(_MAGIC)
    if start < 0:
        return LoaderCache({})
    data = data[start:]
    _, count, _, _, extension = _HEADER.unpack_from(data)
    table = data[_HEADER.size : _HEADER.size + count * _ENTRY.size]
    levels = _levels(data, extension)
    found: dict[str, tuple[Entry, ...]] = {}
    for flags, key, value, _, hwcap in _ENTRY.iter_unpack(table[: len(table) // _ENTRY.size * _ENTRY.size]):
        if flags != FLAG_X8664_LIB64_LIBC6:
            continue
        level = None
        if hwcap & HWCAP_EXTENSION:
            if (index := hwcap & 0xFFFFFFFF) >= len(levels):
                continue
            level = levels[index]
        elif hwcap:  # for CPUs of a kind that newer loaders do not know
            continue
        name = _text(data, key)
        found[name] = (*found.get(name, ()), Entry(_text(data, value), level))
    return LoaderCache(found)


def _levels(data: bytes, extension: int) -> list[str]:
    """The names of the glibc-hwcaps folders in the order in which entries number them."""
    if not extension:
        return []
    magic, count = struct.unpack_from("<II", data, extension)
    if magic != EXTENSION_MAGIC:
        return []
    for index in range(min(count, 64)):
        tag, _, offset, size = _SECTION.unpack_from(data, extension + 8 + index * _SECTION.size)
        if tag == EXTENSION_GLIBC_HWCAPS:
            names = data[offset : offset + (size & ~3)]
            return [_text(data, name) for (name,) in struct.iter_unpack("<I", names[: len(names) & ~3])]
    return []


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    return data[offset : end if end >= 0 else None].decode("utf-8", "surrogateescape")
