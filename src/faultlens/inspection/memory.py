"""What stands at an address of a process or of a core file."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from faultlens.system import elf

MAX_READ = 64 << 20
ADDRESS_LIMIT = 1 << 63  # a file offset is signed; user space ends well below


class Memory(Protocol):
    def read(self, address: int, size: int) -> bytes:
        """As many bytes as can be read from `address` on, at most `size`; never raises."""


class ProcessMemory:
    """Memory of a live process through /proc/PID/mem. Opening it raises OSError when that is not allowed."""

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, address: int, size: int) -> bytes:
        return read_file(self._file, address, size)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> ProcessMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Segment(NamedTuple):
    """A stretch of memory: its first bytes stand in the core, the rest in `path` or nowhere."""

    start: int
    end: int
    core_offset: int
    core_size: int
    path: str | None = None
    path_offset: int = 0


class CoreMemory:
    """Memory as a core file holds it; pages the kernel left out are read from the program or library they came from.

    A core may name any file as mapped: others than programs and libraries are never read."""

    def __init__(self, core: int, segments: Iterable[Segment]) -> None:
        self._core = core
        self._segments = sorted(segments)
        self._starts = [segment.start for segment in self._segments]
        self._files: dict[str, int | None] = {}

    def read(self, address: int, size: int) -> bytes:
        size = min(size, MAX_READ)
        parts = []
        while size > 0:
            part = self._read_once(address, size)
            if not part:
                break
            parts.append(part)
            address += len(part)
            size -= len(part)
        return b"".join(parts)

    def distrust(self, path: str) -> None:
        """The file is not what the program had mapped: read nothing from it any more."""
        file = self._files.get(path)
        self._files[path] = None
        if file is not None:
            os.close(file)

    def close(self) -> None:
        for file in self._files.values():
            if file is not None:
                os.close(file)
        self._files.clear()

    def __enter__(self) -> CoreMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_once(self, address: int, size: int) -> bytes:
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._segments[index].end:
            return b""
        segment = self._segments[index]
        size = min(size, segment.end - address)
        inside = address - segment.start
        if inside < segment.core_size:
            size = min(size, segment.core_size - inside)
            return read_file(self._core, segment.core_offset + inside, size)
        if segment.path is None:
            return b""
        return self._read_mapped_file(segment.path, segment.path_offset + inside, size)

    def _read_mapped_file(self, path: str, offset: int, size: int) -> bytes:
        if path not in self._files:
            try:
                # A path out of a core may name a FIFO or a device; opening those must not block or act.
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            except (OSError, ValueError):
                self._files[path] = None
            else:
                self._files[path] = file if _is_code(file) else None
                if self._files[path] is None:
                    os.close(file)
        mapped = self._files[path]
        return b"" if mapped is None else read_file(mapped, offset, size)


def _is_code(file: int) -> bool:
    """A program or library; a core is an ELF file too, of somebody's memory."""
    header = read_file(file, 0, 18)
    return header[:4] == b"\x7fELF" and int.from_bytes(header[16:18], "little") in (elf.ET_EXEC, elf.ET_DYN)


def read_file(file: int, offset: int, size: int) -> bytes:
    """pread that gives what there is, and nothing where there is nothing."""
    size = min(size, MAX_READ)
    if size <= 0 or not 0 <= offset < ADDRESS_LIMIT - size:
        return b""
    try:
        return os.pread(file, size, offset)
    except OSError:
        return b""


def read_u64(memory: Memory, address: int) -> int | None:
    word = memory.read(address, 8)
    return int.from_bytes(word, "little") if len(word) == 8 else None


def read_text(memory: Memory, address: int, limit: int = 4096) -> str | None:
    """The C string at `address`, cut at `limit` bytes; None where nothing can be read."""
    data = memory.read(address, limit)
    return data.split(b"\0", 1)[0].decode("utf-8", "replace") if data else None
