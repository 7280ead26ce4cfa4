"""What an ELF64 x86-64 file says of itself: header, program headers, sections, notes.

Counts and sizes in the file are never trusted: everything is read through a function that gives at most
what is there, and a table that is not there in full is an ElfError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

Read = Callable[[int, int], bytes]  # (offset, size) -> at most size bytes

ELFCLASS64 = 2
ELFDATA2LSB = 1
ET_EXEC = 2
ET_DYN = 3
ET_CORE = 4
EM_X86_64 = 62
PT_LOAD = 1
PT_NOTE = 4
PF_X, PF_W, PF_R = 1, 2, 4
PN_XNUM = 0xFFFF  # the true count of program headers is in sh_info of section 0
SHT_PROGBITS = 1
SHT_SYMTAB = 2
SHT_DYNSYM = 11
SHF_EXECINSTR = 4
NT_GNU_BUILD_ID = 3

MAX_HEADERS = 1 << 20
MAX_NOTE_BYTES = 64 << 20

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_NHDR = struct.Struct("<III")


class ElfError(ValueError):
    """The bytes are not an ELF64 x86-64 file, or end too early."""


class Header(NamedTuple):
    type: int
    phoff: int
    shoff: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int


class ProgramHeader(NamedTuple):
    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class Section(NamedTuple):
    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


class Note(NamedTuple):
    name: bytes
    type: int
    data: bytes


def read_header(read: Read) -> Header:
    raw = read(0, _EHDR.size)
    if raw[:4] != b"\x7fELF":
        raise ElfError("it does not begin with the ELF magic")
    if len(raw) < _EHDR.size:
        raise ElfError("it ends within the ELF header")
    ident, kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _ = _EHDR.unpack(raw)
    if ident[4] != ELFCLASS64 or ident[5] != ELFDATA2LSB or machine != EM_X86_64:
        raise ElfError(f"it is for {_describe_machine(ident, machine)}")
    if phnum == PN_XNUM and shoff:
        first = read(shoff, _SHDR.size)
        if len(first) < _SHDR.size:
            raise ElfError("it ends before its section header")
        phnum = Section(*_SHDR.unpack(first)).info
    return Header(kind, phoff, shoff, phentsize, phnum, shentsize, shnum)


def program_headers(read: Read, header: Header) -> list[ProgramHeader]:
    table = _read_table(read, header.phoff, header.phnum, header.phentsize, _PHDR.size, "program headers")
    return [ProgramHeader(*row) for row in _PHDR.iter_unpack(table)]


def sections(read: Read, header: Header) -> list[Section]:
    table = _read_table(read, header.shoff, header.shnum, header.shentsize, _SHDR.size, "section headers")
    return [Section(*row) for row in _SHDR.iter_unpack(table)]


def notes(data: bytes) -> Iterator[Note]:
    """The notes of a PT_NOTE segment; ends quietly where the bytes stop making sense."""
    position = 0
    while position + _NHDR.size <= len(data):
        name_size, data_size, kind = _NHDR.unpack_from(data, position)
        name_start = position + _NHDR.size
        data_start = name_start + _align4(name_size)
        position = data_start + _align4(data_size)
        if data_start + data_size > len(data):
            return
        name = data[name_start : name_start + name_size].rstrip(b"\0")
        yield Note(name, kind, data[data_start : data_start + data_size])


def build_id(read: Read, headers: list[ProgramHeader]) -> str | None:
    """The GNU build id, from the notes that the given headers point to."""
    for header in headers:
        if header.type == PT_NOTE and header.filesz <= 1 << 16:
            for note in notes(read(header.offset, header.filesz)):
                if note.name == b"GNU" and note.type == NT_GNU_BUILD_ID:
                    return note.data.hex()
    return None


def _read_table(read: Read, offset: int, count: int, entry: int, expected: int, what: str) -> bytes:
    if not count:
        return b""
    if entry != expected or count > MAX_HEADERS:
        raise ElfError(f"its {what} are damaged")
    table = read(offset, count * entry)
    if len(table) < count * entry:
        raise ElfError(f"it ends before its {what}")
    return table


def _align4(size: int) -> int:
    return (size + 3) & ~3


def _describe_machine(ident: bytes, machine: int) -> str:
    names = {3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "s390", 40: "ARM", 62: "x86-64"}
    names |= {183: "AArch64", 243: "RISC-V", 258: "LoongArch"}
    bits = "64-bit" if ident[4] == ELFCLASS64 else "32-bit"
    order = "" if ident[5] == ELFDATA2LSB else "big-endian "
    return f"{bits} {order}{names.get(machine, f'machine {machine}')}"
