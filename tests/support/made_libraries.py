"""Shared libraries for tests, written byte by byte: what the loader reads of them, and no code."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.system import binary as tags

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_HEADERS = 64 + 3 * 56


class _Names:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text.encode()) - 1


def write_library(
    path: Path,
    *,
    soname: str | None = None,
    needed: Iterable[str] = (),
    rpath: str | None = None,
    runpath: str | None = None,
    needs: Mapping[str, Iterable[str]] | None = None,
    offers: Iterable[str] = (),
    exports: Iterable[str] = (),
    imports: Iterable[str] = (),
    interpreter: str | None = None,
    content: bytes = b"",
) -> Path:
    """One segment holds the whole file, so that addresses are places in the file."""
    names = _Names()
    entries = [(tags.DT_NEEDED, names.add(each)) for each in needed]
    for tag, text in ((tags.DT_SONAME, soname), (tags.DT_RPATH, rpath), (tags.DT_RUNPATH, runpath)):
        if text is not None:
            entries.append((tag, names.add(text)))
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for section, symbol_names in ((1, exports), (0, imports)):
        for name in symbol_names:
            symbols += struct.pack("<IBBHQQ", names.add(name), tags.STB_GLOBAL << 4, 0, section, 1, 1)
    wanted = _version_needs(names, needs or {})
    offered = _version_offers(names, tuple(offers))
    place = _HEADERS
    chunks = {}
    for tag, data in (
        (tags.DT_VERNEED, wanted), (tags.DT_VERDEF, offered), (tags.DT_SYMTAB, symbols), (tags.DT_STRTAB, names.data),
    ):  # fmt: skip
        chunks[tag] = data
        if data:
            entries.append((tag, place))
        place += len(data)
    entries += [(tags.DT_STRSZ, len(names.data))]
    entries += [(tags.DT_VERNEEDNUM, len(needs))] if needs else []
    entries += [(tags.DT_VERDEFNUM, len(tuple(offers)))] if offered else []
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in [*entries, (0, 0)])
    loader = (interpreter or "").encode()
    body = b"".join(chunks.values()) + dynamic + loader + content
    size = _HEADERS + len(body)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 3 if interpreter else 2, 64, 0, 0)
    segments = struct.pack("<IIQQQQQQ", _PT_LOAD, 5, 0, 0, 0, size, size, 4096)
    segments += struct.pack("<IIQQQQQQ", _PT_DYNAMIC, 4, place, place, place, len(dynamic), len(dynamic), 8)
    start = place + len(dynamic)
    segments += struct.pack("<IIQQQQQQ", _PT_INTERP, 4, start, start, start, len(loader), len(loader), 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + segments + body)
    return path


def _version_needs(names: _Names, needs: Mapping[str, Iterable[str]]) -> bytes:
    data = b""
    for index, (file, versions) in enumerate(needs.items()):
        wanted = tuple(versions)
        last = index == len(needs) - 1
        data += struct.pack("<HHIII", 1, len(wanted), names.add(file), 16, 0 if last else 16 + 16 * len(wanted))
        for number, version in enumerate(wanted):
            data += struct.pack("<IHHII", 0, 0, 2, names.add(version), 16 if number < len(wanted) - 1 else 0)
    return data


def _version_offers(names: _Names, offers: tuple[str, ...]) -> bytes:
    data = b""
    for index, version in enumerate(offers):
        data += struct.pack("<HHHHIII", 1, 0, index + 1, 1, 0, 20, 28 if index < len(offers) - 1 else 0)
        data += struct.pack("<II", names.add(version), 0)
    return data
