"""What a native library says of itself without being loaded: what it needs, offers, and where it looks for it."""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from faultlens.system import elf
from faultlens.system.pieces import Pieces

PT_DYNAMIC = 2
SHN_UNDEF = 0
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # flags of sections
STB_GLOBAL, STB_WEAK = 1, 2
MAX_TABLE = 1 << 30
MAX_POINTERS = 1 << 16
WORD = (1 << 64) - 1
_DT = struct.Struct("<qQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_VERDEF = struct.Struct("<HHHHIII")
_GNU_HASH = struct.Struct("<IIII")
VER_FLG_WEAK = 2  # the loader does without this version
(
    DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_INIT, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_INIT_ARRAY,
    DT_INIT_ARRAYSZ, DT_GNU_HASH, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM,
) = (
    0, 1, 5, 6, 10, 12, 14, 15, 29, 25, 27, 0x6FFFFEF5, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF,
)  # fmt: skip
DT_RELA, DT_RELASZ, DT_RELACOUNT = 7, 8, 0x6FFFFFF9
R_X86_64_64, R_X86_64_RELATIVE = 1, 8


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
    """A library file, mapped if it can be. Nothing in it is trusted: what is not there reads as nothing, or raises
    ElfError."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            self._map = _mapped(file)
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

    def find_constant(self, text: bytes) -> int:
        """The same within the read-only data, where texts are: a seventh of the file, on average."""
        for start, stop in self._constants:
            position = self._map.find(text, start, stop)
            if position >= 0:
                return position
        return -1

    @cached_property
    def _constants(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [
                (section.offset, section.offset + section.size)
                for section in elf.sections(self.read, self.header)
                if section.type == elf.SHT_PROGBITS and section.flags & (_WRITE | _ALLOC | _EXECUTE) == _ALLOC
            ]
        except elf.ElfError:  # sections are not needed to load a library
            found = []
        if not found:
            readable = (each for each in self.segments if each.type == elf.PT_LOAD and not each.flags & elf.PF_W)
            found = [(each.offset, each.offset + each.filesz) for each in readable]
        size = len(self._map)
        return tuple((min(start, size), min(stop, size)) for start, stop in found)

    @property
    def is_whole(self) -> bool:
        """False for a file that was cut short: its code would be mapped from where nothing is (SIGBUS)."""
        loaded = (segment for segment in self.segments if segment.type == elf.PT_LOAD and segment.filesz)
        return all(segment.offset + segment.filesz <= len(self._map) for segment in loaded)

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
        """Addresses of the functions that run when the library is loaded."""
        tags = self._tags
        addresses = list(tags.get(DT_INIT, ()))
        if DT_INIT_ARRAY in tags and DT_INIT_ARRAYSZ in tags:
            addresses += self._pointers(tags[DT_INIT_ARRAY][0], tags[DT_INIT_ARRAYSZ][0])
        return tuple(address for address in addresses if address not in (0, WORD))

    def symbols(self, count: int | None = None) -> Iterator[Symbol]:
        """The dynamic symbols, or the first of them. A million take a second: ask only where it matters."""
        names = self._map[slice(*self._strings)]
        table = self._symbol_table()
        table = table if count is None else table[: count * _SYMBOL.size]
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(table):
            if name:
                end = names.find(b"\0", name)
                text = names[name : end if end >= 0 else None].decode("utf-8", "replace")
                yield Symbol(text, section != SHN_UNDEF, info >> 4, value, size)

    def imports(self) -> Iterator[Symbol]:
        """What it expects others to define. They stand before the symbols of the hash table: the rest is not read."""
        head = self.at(self._tags[DT_GNU_HASH][0], _GNU_HASH.size) if DT_GNU_HASH in self._tags else b""
        first = _GNU_HASH.unpack(head)[1] if len(head) == _GNU_HASH.size else 0
        # A library that defines nothing has an empty hash table, which begins at 1.
        return (symbol for symbol in self.symbols(first if first > 1 else None) if not symbol.defined)

    def exports(self, name: str) -> bool:
        """Through the hash table that the loader uses too: microseconds, also among half a million symbols."""
        if DT_GNU_HASH not in self._tags:
            return any(symbol.defined and symbol.name == name for symbol in self.symbols())
        head = self.at(self._tags[DT_GNU_HASH][0], _GNU_HASH.size)
        buckets, first, words, shift = _GNU_HASH.unpack(head) if len(head) == _GNU_HASH.size else (0, 0, 0, 0)
        if not buckets or not words or shift > 63:
            return False
        text = name.encode()
        code = gnu_hash(text)
        filters = self._tags[DT_GNU_HASH][0] + _GNU_HASH.size
        word = int.from_bytes(self.at(filters + code // 64 % words * 8, 8), "little")
        if not word >> code % 64 & word >> (code >> shift) % 64 & 1:
            return False
        table = filters + words * 8
        index = int.from_bytes(self.at(table + code % buckets * 4, 4), "little")
        chain = table + buckets * 4
        for position in range(index, index + (1 << 16)) if index >= max(first, 1) else ():
            link = self.at(chain + (position - first) * 4, 4)
            found = int.from_bytes(link, "little")
            if found | 1 == code | 1 and self._is_defined(position, text):
                return True
            if len(link) < 4 or found & 1:
                break
        return False

    def _is_defined(self, index: int, name: bytes) -> bool:
        raw = self.at(self._tags.get(DT_SYMTAB, [0])[0] + index * _SYMBOL.size, _SYMBOL.size)
        if len(raw) < _SYMBOL.size:
            return False
        offset, _, _, section, _, _ = _SYMBOL.unpack(raw)
        start = self._strings[0] + offset
        return section != SHN_UNDEF and self._map[start : start + len(name) + 1] == name + b"\0"

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

    def _pointers(self, start: int, size: int) -> list[int]:
        """A table of pointers as the loader fills it.

        GNU ld and lld leave the addresses in the file too; the linker of TensorFlow's wheels leaves zeros, and
        the addresses stand only in the relocations."""
        table = self.at(start, min(size, MAX_POINTERS * 8))
        pointers = [value for (value,) in struct.iter_unpack("<Q", table[: len(table) & ~7])]
        if 0 in pointers:
            for place, value in self._relocated(start, start + 8 * len(pointers)):
                pointers[(place - start) // 8] = value & WORD
        return pointers

    def _relocated(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where the loader writes addresses of this library between start and stop, and which.

        The relative relocations come first and are sorted by place: a million are not read for one table. The
        others, for functions that are exported, are few between start and stop but can be anywhere."""
        tags = self._tags
        table = self._offset(tags[DT_RELA][0]) if DT_RELA in tags else None
        if table is None:
            return
        count = max(0, min(tags.get(DT_RELASZ, [0])[0], len(self._map) - table)) // _RELA.size
        relative = min(tags.get(DT_RELACOUNT, [0])[0], count)
        places = _Places(self._map, table, relative)
        first, last = bisect_left(places, start), bisect_left(places, stop)
        for index in range(first, last):
            place, _, addend = places.entry(index)
            if start <= place < stop:
                yield place, addend
        if last - first >= (stop - start) // 8:
            return
        others = self._map[table + relative * _RELA.size : table + count * _RELA.size]
        for place, info, addend in _RELA.iter_unpack(others):
            if start <= place < stop and info & 0xFFFFFFFF in (R_X86_64_64, R_X86_64_RELATIVE):
                yield place, addend + (self._symbol_value(info >> 32) if info >> 32 else 0)

    def _symbol_value(self, index: int) -> int:
        """Zero where another library is to define it."""
        raw = self.at(self._tags.get(DT_SYMTAB, [0])[0] + index * _SYMBOL.size, _SYMBOL.size)
        return int(_SYMBOL.unpack(raw)[4]) if len(raw) == _SYMBOL.size else 0

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
            _, flags, _, name, following = _VERNAUX.unpack(raw)
            if not flags & VER_FLG_WEAK:
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


class _Places(Sequence[int]):
    """The places that relocations write to, read one by one: for a binary search."""

    def __init__(self, file: mmap.mmap | Pieces, table: int, count: int) -> None:
        self._file, self._table, self._count = file, table, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        return self.entry(index)[0]

    def entry(self, index: int) -> tuple[int, int, int]:
        start = self._table + index * _RELA.size
        place, info, addend = _RELA.unpack(self._file[start : start + _RELA.size])
        return place, info, addend


def _mapped(file: int) -> mmap.mmap | Pieces:
    """Raises ValueError for an empty file."""
    try:
        return mmap.mmap(file, 0, prot=mmap.PROT_READ)
    except OSError:  # ulimit -v, or a file system that cannot
        return Pieces(file)


def gnu_hash(name: bytes) -> int:
    """The hash of DT_GNU_HASH."""
    code = 5381
    for byte in name:
        code = (code * 33 + byte) & 0xFFFFFFFF
    return code
