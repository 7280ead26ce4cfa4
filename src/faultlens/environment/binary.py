"""What a native library says of itself without being loaded: what it needs, offers, and where it looks for it."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from faultlens.environment import elf

PT_DYNAMIC = 2
SHN_UNDEF = 0
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_UNIQUE = 0, 1, 2, 10
MAX_TABLE = 1 << 30
_DT = struct.Struct("<qQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_VERDEF = struct.Struct("<HHHHIII")
(
    DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_INIT, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_INIT_ARRAY,
    DT_INIT_ARRAYSZ, DT_GNU_HASH, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM,
) = (
    0, 1, 5, 6, 10, 12, 14, 15, 29, 25, 27, 0x6FFFFEF5, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF,
)  # fmt: skip
DT_HASH = 4


class Symbol(NamedTuple):
    """An entry of the dynamic symbol table."""

    name: str
    defined: bool
    binding: int
    value: int
    size: int


class Dynamic(NamedTuple):
    """The part of a library that the loader obeys."""

    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]  # "$ORIGIN" as it stands in the file
    runpath: tuple[str, ...]
    needs_versions: Mapping[str, tuple[str, ...]]  # library -> "GLIBC_2.34", …
    offers_versions: tuple[str, ...]


class Binary:
    """A library file, mapped. Nothing in it is trusted: what is not there reads as nothing, or raises ElfError."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            self._map = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        except ValueError as error:
            raise elf.ElfError("it is empty") from error
        finally:
            os.close(file)
        try:
            self.header = elf.read_header(self.read)
            self.segments = elf.program_headers(self.read, self.header)
        except BaseException:
            self._map.close()
            raise

    def __enter__(self) -> Binary:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._map.close()

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file: at most as many as there are."""
        return self._map[offset : offset + min(size, MAX_TABLE)] if offset >= 0 and size > 0 else b""

    def at(self, address: int, size: int) -> bytes:
        """Bytes of the image that lie in the file."""
        for segment in self.segments:
            if segment.type == elf.PT_LOAD and 0 <= address - segment.vaddr < segment.filesz:
                inside = address - segment.vaddr
                return self.read(segment.offset + inside, min(size, segment.filesz - inside))
        return b""

    def _offset(self, address: int) -> int | None:
        for segment in self.segments:
            if segment.type == elf.PT_LOAD and 0 <= address - segment.vaddr < segment.filesz:
                return segment.offset + address - segment.vaddr
        return None

    def find(self, text: bytes) -> int:
        """Where the bytes first stand in the file; -1 when nowhere."""
        return self._map.find(text)

    @cached_property
    def build_id(self) -> str | None:
        return elf.build_id(self.read, self.segments)

    @cached_property
    def dynamic(self) -> Dynamic:
        tags = self._tags
        needed = tuple(self._string(value) for value in tags.get(DT_NEEDED, ()))
        return Dynamic(
            soname=self._string(tags[DT_SONAME][0]) if DT_SONAME in tags else None,
            needed=needed,
            rpath=self._folders(DT_RPATH),
            runpath=self._folders(DT_RUNPATH),
            needs_versions=self._needs_versions(),
            offers_versions=tuple(self._offers_versions()),
        )

    @property
    def initialisers(self) -> tuple[int, ...]:
        """Addresses of the functions that run when the library is loaded.

        In a position independent library they are written by relocations; the addends stand in the file too where
        the linker wrote them (GNU ld and lld do)."""
        tags = self._tags
        addresses = list(tags.get(DT_INIT, ()))
        if DT_INIT_ARRAY in tags and DT_INIT_ARRAYSZ in tags:
            table = self.at(tags[DT_INIT_ARRAY][0], tags[DT_INIT_ARRAYSZ][0])
            addresses += [value for (value,) in struct.iter_unpack("<Q", table[: len(table) & ~7])]
        return tuple(address for address in addresses if address not in (0, (1 << 64) - 1))

    def symbols(self) -> Iterator[Symbol]:
        """The dynamic symbols. A million of them take a second: ask only where it matters."""
        names = self._map[slice(*self._strings)]
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(self._symbol_table()):
            if name:
                end = names.find(b"\0", name)
                text = names[name : end if end >= 0 else None].decode("utf-8", "replace")
                yield Symbol(text, section != SHN_UNDEF, info >> 4, value, size)

    def exports(self, name: str) -> bool:
        return any(symbol.defined and symbol.name == name for symbol in self.symbols())

    # ------------------------------------------------------------------------------------------------ tables

    @cached_property
    def _tags(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for segment in self.segments:
            if segment.type == PT_DYNAMIC:
                table = self.read(segment.offset, segment.filesz)
                for tag, value in _DT.iter_unpack(table[: len(table) // _DT.size * _DT.size]):
                    if tag == DT_NULL:
                        break
                    found.setdefault(tag & 0xFFFFFFFFFFFFFFFF, []).append(value)
        return found

    @cached_property
    def _strings(self) -> tuple[int, int]:
        """Where the names begin and end in the file: TensorFlow has 100 MB of them."""
        tags = self._tags
        if DT_STRTAB not in tags or DT_STRSZ not in tags:
            return 0, 0
        start = self._offset(tags[DT_STRTAB][0])
        return (start, min(start + tags[DT_STRSZ][0], len(self._map))) if start is not None else (0, 0)

    def _string(self, offset: int) -> str:
        start, stop = self._strings
        end = self._map.find(b"\0", start + offset, stop)
        return self._map[start + offset : end if end >= 0 else stop].decode("utf-8", "replace")

    def _folders(self, tag: int) -> tuple[str, ...]:
        return tuple(folder for value in self._tags.get(tag, ()) for folder in self._string(value).split(":") if folder)

    def _symbol_table(self) -> bytes:
        tags = self._tags
        if DT_SYMTAB not in tags:
            return b""
        # Sections are not needed to load a library and may be stripped, but they say how long the table is.
        for section in elf.sections(self.read, self.header):
            if section.type == elf.SHT_DYNSYM:
                return self.read(section.offset, section.size // _SYMBOL.size * _SYMBOL.size)
        start = tags[DT_SYMTAB][0]
        end = tags[DT_STRTAB][0] if tags.get(DT_STRTAB, [0])[0] > start else start
        table = self.at(start, end - start)
        return table[: len(table) // _SYMBOL.size * _SYMBOL.size]

    def _needs_versions(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        position = self._tags.get(DT_VERNEED, [0])[0]
        for _ in range(min(self._tags.get(DT_VERNEEDNUM, [0])[0], 1 << 12) if position else 0):
            raw = self.at(position, _VERNEED.size)
            if len(raw) < _VERNEED.size:
                break
            _, count, file, first, following = _VERNEED.unpack(raw)
            found[self._string(file)] = tuple(self._needed_names(position + first, count))
            if not following:
                break
            position += following
        return found

    def _needed_names(self, position: int, count: int) -> Iterator[str]:
        for _ in range(count):
            raw = self.at(position, _VERNAUX.size)
            if len(raw) < _VERNAUX.size:
                return
            _, _, _, name, following = _VERNAUX.unpack(raw)
            yield self._string(name)
            if not following:
                return
            position += following

    def _offers_versions(self) -> Iterator[str]:
        position = self._tags.get(DT_VERDEF, [0])[0]
        for _ in range(min(self._tags.get(DT_VERDEFNUM, [0])[0], 1 << 12) if position else 0):
            raw = self.at(position, _VERDEF.size)
            if len(raw) < _VERDEF.size:
                return
            _, _, _, _, _, first, following = _VERDEF.unpack(raw)
            name = self.at(position + first, 4)
            if len(name) == 4:
                yield self._string(int.from_bytes(name, "little"))
            if not following:
                return
            position += following
