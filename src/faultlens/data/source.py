"""Where the bytes of a file come from: the local disk, or anything that fsspec reaches.

Nothing is mapped: a file that shrinks meanwhile would kill its reader. Paths are texts (`text/file_names.py`)
everywhere in a scan, because they are sent, kept and written as JSON; here they become names again."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

from faultlens.errors import FaultlensError
from faultlens.records.scan import Identity
from faultlens.text.file_names import to_name

_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+(://|::)")


class Source(Protocol):
    path: str

    def identity(self) -> Identity:
        """Of the file under this name now, which may be another one than was opened."""

    def read(self, offset: int, size: int) -> bytes:
        """Fewer bytes at the end of the file alone."""

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """How many bytes were read; fewer than there is room for at the end of the file alone."""

    def file(self) -> BinaryIO:
        """As a file object of its own, for libraries that want one."""


class LocalSource:
    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def identity(self) -> Identity:
        return _identity(os.stat(to_name(self.path)))

    def read(self, offset: int, size: int) -> bytes:
        first = os.pread(self._descriptor, size, offset)
        if len(first) == size or not first:
            return first
        parts = [first]
        while (missing := size - sum(map(len, parts))) and (
            part := os.pread(self._descriptor, missing, offset + size - missing)
        ):
            parts.append(part)
        return b"".join(parts)

    def read_into(self, offset: int, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer) and (count := os.preadv(self._descriptor, [buffer[done:]], offset + done)):
            done += count
        return done

    def file(self) -> BinaryIO:
        # Not by its name, which may be another file's by now; and with a position of its own.
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        return open(descriptor, "rb")


class RemoteSource:
    def __init__(self, path: str, system: Any, name: str) -> None:
        self.path = path
        self._system, self._name = system, name

    def identity(self) -> Identity:
        self._system.invalidate_cache()
        return remote_identity(self._system.info(self._name))

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._system.cat_file(self._name, start=offset, end=offset + size)) if size else b""

    def read_into(self, offset: int, buffer: memoryview) -> int:
        data = self.read(offset, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def file(self) -> BinaryIO:
        opened: BinaryIO = self._system.open(self._name, "rb")
        return opened


@contextmanager
def opened(path: str) -> Iterator[Source]:
    """A regular file, or OSError."""
    if is_remote(path):
        system, name = remote(path)
        yield RemoteSource(path, system, name)
        return
    descriptor = os.open(to_name(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield LocalSource(path, descriptor)
    finally:
        os.close(descriptor)


class MemorySource:
    """Bytes at hand that are read like a file: a member of an archive."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._data = data

    def identity(self) -> Identity:
        return Identity(size=len(self._data))

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def read_into(self, offset: int, buffer: memoryview) -> int:
        data = self.read(offset, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def file(self) -> BinaryIO:
        return io.BytesIO(self._data)


def is_remote(path: str) -> bool:
    return bool(_REMOTE.match(path))


def remote(path: str) -> tuple[Any, str]:
    """The file system that holds it, and its name there."""
    try:
        import fsspec
    except ImportError as error:
        raise FaultlensError(
            f"{path} is reached through fsspec.", "Install it: pip install 'faultlens[data]'."
        ) from error
    try:
        system, name = fsspec.core.url_to_fs(to_name(path))
    except (ImportError, ValueError) as error:
        raise FaultlensError(f"{path} cannot be reached: {error}.", "Install what fsspec needs for it.") from error
    return system, str(name)


def remote_identity(info: dict[str, Any]) -> Identity:
    tag = next(
        (str(info[name]) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created") if info.get(name)),
        "",
    )
    return Identity(size=int(info.get("size") or 0), tag=tag)


def _identity(state: os.stat_result) -> Identity:
    return Identity(size=state.st_size, modified=state.st_mtime_ns, inode=state.st_ino)
