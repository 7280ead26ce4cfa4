"""A copy of a core that libdw can read.

Libraries that older versions of patchelf changed (it packs the libraries of many wheels) have segments that
lie further back in the file than in memory. libdw finds such an image in the core, calls it "address out of
range", and refuses the whole core; so does pystack. Without the ELF magic in the core it goes by the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from faultlens.inspection.memory import read_file
from faultlens.records.crash import Address, Mapping
from faultlens.system import elf

MAGIC_SIZE = 4


@contextmanager
def readable_copy(core: Path, mappings: Sequence[Mapping]) -> Iterator[Path | None]:
    """None when nothing in it can stop libdw. The copy has no name, so that none is left behind."""
    odd = [each.start for each in mappings if each.path and each.offset == 0 and _is_packed_oddly(each.path)]
    if not odd:
        yield None
        return
    with core.open("rb") as source, tempfile.TemporaryFile(prefix="faultlens-core-") as copy:
        _copy_data(source.fileno(), copy.fileno())
        for offset in _offsets_in_core(copy.fileno(), frozenset(odd)):
            os.pwrite(copy.fileno(), bytes(MAGIC_SIZE), offset)
        yield Path(f"/proc/self/fd/{copy.fileno()}")


def _is_packed_oddly(path: str) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return False
    try:
        headers = _program_headers(file)
    except elf.ElfError:
        return False
    finally:
        os.close(file)
    return any(header.type == elf.PT_LOAD and header.offset > header.vaddr for header in headers)


def _offsets_in_core(core: int, starts: frozenset[Address]) -> list[int]:
    loads = (header for header in _program_headers(core) if header.type == elf.PT_LOAD)
    return [load.offset for load in loads if load.vaddr in starts and load.filesz >= MAGIC_SIZE]


def _program_headers(file: int) -> list[elf.ProgramHeader]:
    def read(offset: int, size: int) -> bytes:
        return read_file(file, offset, size)

    return elf.program_headers(read, elf.read_header(read))


def _copy_data(source: int, target: int) -> None:
    """Everything but the holes, of which cores have many."""
    end = os.fstat(source).st_size
    os.ftruncate(target, end)
    position = 0
    while position < end:
        try:
            position = os.lseek(source, position, os.SEEK_DATA)
        except OSError:  # only a hole is left
            return
        stop = os.lseek(source, position, os.SEEK_HOLE)
        os.lseek(target, position, os.SEEK_SET)
        while position < stop:
            copied = os.sendfile(target, source, position, stop - position)
            if not copied:
                return
            position += copied
