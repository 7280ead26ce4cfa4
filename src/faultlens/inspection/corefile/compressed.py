"""Opens core files as they are kept: plain, or packed with gzip, zstd, lz4 or xz."""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import lz4.frame
import zstandard

from faultlens.errors import FaultlensError
from faultlens.system import elf

CHUNK = 1 << 20
HOLE = 64 << 10  # stretches of zeros of this size take no room on disk
RESERVE = 256 << 20  # disk space that is left to others

_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    b"\x04\x22\x4d\x18": lz4.frame.LZ4FrameFile,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_DAMAGE = (OSError, EOFError, RuntimeError, ValueError, lzma.LZMAError, zstandard.ZstdError)


@contextmanager
def plain_core(path: Path) -> Iterator[Path]:
    """Where the core can be read plainly: a temporary file, removed afterwards, if it was packed."""
    opener = _opener(path)
    if opener is None:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="faultlens-core-") as target:
        with path.open("rb") as packed:
            _unpack(opener(packed), target.file, path)
        yield Path(target.name)


def _opener(path: Path) -> Callable[[IO[bytes]], Any] | None:
    try:
        if path.is_dir():
            raise FaultlensError(f"{path} is a directory.", "Name the core file in it.")
        if path.exists() and not path.is_file():
            raise FaultlensError(f"{path} is not a regular file.", "Name a core file.")
        with path.open("rb") as file:
            magic = file.read(8)
    except FileNotFoundError as error:
        raise FaultlensError(
            f"There is no file {path}.",
            "`cat /proc/sys/kernel/core_pattern` says where cores go; `ulimit -c` whether they are written.",
        ) from error
    except PermissionError as error:
        raise FaultlensError(
            f"{path} may not be read by this user.",
            "A core belongs to the user whose program died: use sudo.",
        ) from error
    except (OSError, ValueError) as error:
        raise FaultlensError(f"Cannot read {path}: {error}.", "Name a core file.") from error
    return next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), None)


def _unpack(source: Any, target: Any, path: Path) -> None:
    """Copies with holes for zeros. A stream that ends early counts as far as it goes, like a cut-off core."""
    end = 0
    limit: int | None = None
    while limit is None or end < limit:
        try:
            chunk = source.read(CHUNK)
        except _DAMAGE:
            chunk = b""
        if not chunk:
            break
        if limit is None:
            limit = _size_of_core(chunk, path)
        for start in range(0, len(chunk), HOLE):
            piece = chunk[start : start + HOLE]
            if piece.count(0) < len(piece):
                os.pwrite(target.fileno(), piece, end + start)
        end += len(chunk)
        _check_room(target.fileno(), path)
    if not end:
        raise FaultlensError(f"{path} is packed, but damaged.", "Take another copy of the file.")
    target.truncate(end)


def _size_of_core(start: bytes, path: Path) -> int:
    """What the program headers say; a small file must not unpack to terabytes."""

    def read(offset: int, size: int) -> bytes:
        return start[offset : offset + size]

    try:
        headers = elf.program_headers(read, elf.read_header(read))
    except elf.ElfError as error:
        raise FaultlensError(
            f"{path} is packed, and what is in it is not a core: {error}.", "Name a core file."
        ) from error
    return max((header.offset + header.filesz for header in headers), default=len(start))


def _check_room(file: int, path: Path) -> None:
    status = os.fstatvfs(file)
    if status.f_bavail * status.f_frsize < RESERVE:
        raise FaultlensError(
            f"There is not enough room in {tempfile.gettempdir()} to unpack {path}.",
            "Set TMPDIR to a folder on a disk with more room.",
        )
