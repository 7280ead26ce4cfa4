"""Which function an address belongs to, from the symbol tables of the mapped libraries."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from faultlens.inspection.maps import Place, locate
from faultlens.records.crash import Address, Frame, Mapping
from faultlens.system import elf

STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC = 0, 2, 10
SHN_UNDEF = 0
DEBUG_FILES = Path("/usr/lib/debug/.build-id")
MAX_NAME = 1 << 14  # mangled names of templates are long
SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size


class Symbol(NamedTuple):
    name: str  # demangled
    exact: bool  # the address lies inside the function; otherwise the name is only the nearest one before


def native_frames(
    addresses: Sequence[int], mappings: Sequence[Mapping], interrupted: bool = False
) -> tuple[Frame, ...]:
    """Frames for return addresses, each library's table read once for all of them.

    `interrupted`: the first address is the instruction that was interrupted.
    """
    places = [locate(mappings, address) for address in addresses]
    # A call that never returns may be the last instruction of its function.
    back = [0 if interrupted and index == 0 else 1 for index in range(len(places))]
    wanted: dict[str, set[int]] = {}
    for place, step in zip(places, back, strict=True):
        if place is not None:
            wanted.setdefault(place.path, set()).add(place.offset - step)
    found = {path: lookup(path, offsets) for path, offsets in wanted.items()}
    return tuple(
        _frame(address, place, found[place.path].get(place.offset - step) if place else None)
        for address, place, step in zip(addresses, places, back, strict=True)
    )


def lookup(path: str, offsets: Iterable[int], exported_only: bool = False) -> dict[int, Symbol]:
    """The symbols at offsets from the beginning of the library's image; nothing for those without one."""
    wanted = sorted(set(offsets))
    try:
        with _Image(path) as image:
            found = image.lookup(wanted, exported_only)
            debug_file = image.debug_file() if not exported_only and image.table(elf.SHT_SYMTAB) is None else None
    except (OSError, ValueError, struct.error):
        return {}
    if debug_file is None:
        return found
    # A distribution's library is stripped, and its symbols may be installed apart from it: with all names a function
    # has; the exported one is the one that people know.
    return {**_lookup_in(debug_file, wanted), **{offset: symbol for offset, symbol in found.items() if symbol.exact}}


def _lookup_in(debug_file: Path, offsets: list[int]) -> dict[int, Symbol]:
    try:
        with _Image(str(debug_file)) as image:
            return image.lookup(offsets, exported_only=False)
    except (OSError, ValueError, struct.error):
        return {}


def value_of(path: str, name: str) -> int | None:
    """Offset of an exported symbol from the beginning of the library's image."""
    try:
        with _Image(path) as image:
            return image.value_of(name.encode())
    except (OSError, ValueError, struct.error):
        return None


def is_stripped(path: str) -> bool:
    """The library has no .symtab, so that only exported functions have names."""
    try:
        with _Image(path) as image:
            return image.table(elf.SHT_SYMTAB) is None
    except (OSError, ValueError, struct.error):
        return False


def demangle(name: str) -> str:
    if not name.startswith("_Z"):
        return name
    function = _demangler()
    return function(name) if function else name


def _frame(address: int, place: Place | None, symbol: Symbol | None) -> Frame:
    return Frame(
        kind="native",
        function=symbol.name if symbol else "??",
        library=place.path if place else None,
        address=Address(address),
        offset=Address(place.offset) if place else None,
        approximate=symbol is not None and not symbol.exact,
    )


class _Table(NamedTuple):
    symbols: memoryview
    names: elf.Section


class _Image:
    """A library file, mapped: the symbol table of a TensorFlow wheel alone has 30 MB."""

    def __init__(self, path: str) -> None:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            self._map = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        finally:
            os.close(file)
        self._view = memoryview(self._map)

    def __enter__(self) -> _Image:
        header = elf.read_header(self._read)
        self._segments = elf.program_headers(self._read, header)
        loads = [each for each in self._segments if each.type == elf.PT_LOAD]
        self._base = min((load.vaddr for load in loads), default=0) & ~0xFFF
        self._sections = elf.sections(self._read, header)
        return self

    def __exit__(self, *_: object) -> None:
        self._view.release()
        self._map.close()

    def table(self, kind: int) -> _Table | None:
        for section in self._sections:
            if section.type == kind and section.link < len(self._sections):
                stop = section.offset + section.size // SYMBOL.size * SYMBOL.size
                return _Table(self._view[section.offset : stop], self._sections[section.link])
        return None

    def lookup(self, offsets: list[int], exported_only: bool) -> dict[int, Symbol]:
        table = None if exported_only else self.table(elf.SHT_SYMTAB)
        table = table or self.table(elf.SHT_DYNSYM)
        if table is None or not offsets:
            return {}
        with table.symbols as symbols:
            return self._nearest(symbols, table.names, [offset + self._base for offset in offsets])

    def debug_file(self) -> Path | None:
        """Where the symbols of a stripped library are installed, if they are."""
        number = elf.build_id(self._read, self._segments)
        path = DEBUG_FILES / number[:2] / f"{number[2:]}.debug" if number else None
        return path if path and path.is_file() else None

    def value_of(self, name: bytes) -> int | None:
        table = self.table(elf.SHT_DYNSYM)
        if table is None:
            return None
        names = self._read(table.names.offset, table.names.size)
        with table.symbols as symbols:
            for name_offset, _, _, section, value, _ in SYMBOL.iter_unpack(symbols):
                if section != SHN_UNDEF and names.startswith(name + b"\0", name_offset):
                    return int(value) - self._base
        return None

    def _nearest(self, symbols: memoryview, names: elf.Section, queries: list[int]) -> dict[int, Symbol]:
        """One pass over an unsorted table: per gap between queries the last symbol that begins in it."""
        best: list[tuple[int, int, int] | None] = [None] * len(queries)
        last = queries[-1]
        for name, info, _, section, value, size in SYMBOL.iter_unpack(symbols):
            if value <= last and section != SHN_UNDEF and info & 15 in (STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE):
                gap = bisect_left(queries, value)
                if (value, size) > (best[gap] or (-1, -1)):
                    best[gap] = (value, size, name)
        found: dict[int, Symbol] = {}
        nearest = None
        for query, candidate in zip(queries, best, strict=True):
            nearest = candidate or nearest
            if nearest is not None:
                value, size, name = nearest
                text = self._name(names, name).decode("utf-8", "replace")
                found[query - self._base] = Symbol(demangle(text), value <= query < value + max(size, 1))
        return found

    def _name(self, names: elf.Section, offset: int) -> bytes:
        start = names.offset + offset
        return bytes(self._view[start : start + MAX_NAME]).split(b"\0", 1)[0]

    def _read(self, offset: int, size: int) -> bytes:
        return bytes(self._view[offset : offset + size])


@cache
def _demangler() -> Callable[[str], str] | None:
    try:
        cxa_demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    cxa_demangle.restype = ctypes.c_void_p
    cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.argtypes = [ctypes.c_void_p]
    free.restype = None

    def demangler(name: str) -> str:
        status = ctypes.c_int()
        text = cxa_demangle(name.encode(), None, None, ctypes.byref(status))
        if not text:
            return name
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            free(text)

    return demangler
