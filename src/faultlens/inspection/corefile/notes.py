"""The notes of a core file: threads and registers, the signal, the mapped files, the auxiliary vector."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from faultlens.system import elf

NT_PRSTATUS = 1
NT_PRPSINFO = 3
NT_AUXV = 6
NT_SIGINFO = 0x53494749
NT_FILE = 0x46494C45

AT_NULL, AT_ENTRY, AT_EXECFN, AT_SYSINFO_EHDR = 0, 9, 31, 33

# struct elf_prstatus: si_signo, si_code, si_errno, pr_cursig, pending and held signals, ids, times, registers
_PRSTATUS_HEAD = struct.Struct("<iiihxxQQiiii")
_PRSTATUS_REGISTERS = 112
_USER_REGS = struct.Struct("<27Q")
_USER_REGS_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
# struct elf_prpsinfo: state, flags, uid, gid, pid, ppid, pgrp, sid, fname, psargs
_PRPSINFO = struct.Struct("<4B4xQIIiiii16s80s")
_PAIR = struct.Struct("<QQ")
_FILE_ENTRY = struct.Struct("<QQQ")


class CoreThread(NamedTuple):
    id: int
    signal: int
    registers: dict[str, int]


class MappedFile(NamedTuple):
    start: int
    end: int
    offset: int
    path: str


class CoreNotes(NamedTuple):
    threads: tuple[CoreThread, ...] = ()  # the crashed one first, as the kernel writes them
    siginfo: bytes = b""
    pid: int | None = None
    parent_pid: int | None = None
    command: str = ""  # at most 80 bytes of it
    files: tuple[MappedFile, ...] = ()  # in order of address
    auxv: bytes = b""

    def auxiliary(self, key: int) -> int | None:
        for name, value in _PAIR.iter_unpack(self.auxv[: len(self.auxv) & ~15]):
            if name in (AT_NULL, key):
                return value if name == key != AT_NULL else None
        return None


def parse_notes(notes: Iterable[elf.Note]) -> CoreNotes:
    """Notes that are too short or repeated are passed over."""
    found = CoreNotes()
    threads = []
    for note in notes:
        if note.name not in (b"CORE", b"LINUX"):
            continue
        if note.type == NT_PRSTATUS and len(note.data) >= _PRSTATUS_REGISTERS + _USER_REGS.size:
            threads.append(_thread(note.data))
        elif note.type == NT_PRPSINFO and len(note.data) >= _PRPSINFO.size:
            *_, pid, parent, _, _, _, arguments = _PRPSINFO.unpack_from(note.data)
            command = arguments.split(b"\0", 1)[0].decode("utf-8", "replace").strip()
            found = found._replace(pid=pid, parent_pid=parent, command=command)
        elif note.type == NT_SIGINFO and not found.siginfo:
            found = found._replace(siginfo=note.data)
        elif note.type == NT_AUXV:
            found = found._replace(auxv=note.data)
        elif note.type == NT_FILE:
            found = found._replace(files=_files(note.data))
    return found._replace(threads=tuple(threads))


def _thread(data: bytes) -> CoreThread:
    _, _, _, current_signal, _, _, tid, *_ = _PRSTATUS_HEAD.unpack_from(data)
    values = _USER_REGS.unpack_from(data, _PRSTATUS_REGISTERS)
    return CoreThread(tid, current_signal, dict(zip(_USER_REGS_NAMES, values, strict=True)))


def _files(data: bytes) -> tuple[MappedFile, ...]:
    """Count and page size, then start, end and offset in pages of each, then all the names."""
    if len(data) < _PAIR.size:
        return ()
    count, page_size = _PAIR.unpack_from(data)
    names_start = _PAIR.size + count * _FILE_ENTRY.size
    if names_start > len(data):
        return ()
    entries = _FILE_ENTRY.iter_unpack(data[_PAIR.size : names_start])
    names = data[names_start:].split(b"\0")
    files = (
        MappedFile(start, end, page * page_size, os.fsdecode(name).encode("utf-8", "replace").decode())
        for (start, end, page), name in zip(entries, names, strict=False)
        if start < end
    )
    return tuple(sorted(files))
