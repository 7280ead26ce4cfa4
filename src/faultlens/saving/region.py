"""A file that is written and read past the page cache where that works, and parts of it that behave like whole files.

Large blocks go to the disk by direct I/O: it takes little of the processor's time, leaves the cache to the training,
and what is read back comes from the disk and not from memory."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BLOCK = 8 << 20
ALIGNMENT = 4096  # of memory, positions and lengths, for direct I/O
LARGE = 1 << 20  # bytes: below, the page cache is quicker


class DiskFile:
    """All is written, or an exception is raised, also where the disk is nearly full."""

    def __init__(self, path: Path, writing: bool = False) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL if writing else os.O_RDONLY
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
        self._direct = _open_direct(path, os.O_RDWR if writing else os.O_RDONLY)
        self._aligned = mmap.mmap(-1, BLOCK)

    def close(self) -> None:
        for descriptor in (self.descriptor, self._direct):
            if descriptor is not None:
                os.close(descriptor)

    def __enter__(self) -> DiskFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def write(self, position: int, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        if size >= LARGE and self._direct is not None:
            head = -position % ALIGNMENT
            self._write_cached(position, left[:head])
            middle = (size - head) // ALIGNMENT * ALIGNMENT
            done = head + self._write_direct(position + head, left[head : head + middle])
            left, position = left[done:], position + done
        self._write_cached(position, left)
        return size

    def read_into(self, position: int, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer):
            count = os.preadv(self.descriptor, [buffer[done : done + BLOCK]], position + done)
            if count == 0:
                break
            done += count
        return done

    def blocks(self, position: int, size: int) -> Iterator[memoryview]:
        """Pieces one after the other, the next one read while one is looked at. Each is overwritten later."""
        start, end = position // ALIGNMENT * ALIGNMENT, position + size
        buffers = itertools.cycle([mmap.mmap(-1, BLOCK), mmap.mmap(-1, BLOCK)])
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._read_piece, start, memoryview(next(buffers)))
            while start < end:
                piece = coming.result()
                if not piece:
                    return
                coming = reader.submit(self._read_piece, start + len(piece), memoryview(next(buffers)))
                yield piece[max(position - start, 0) : end - start]
                start += len(piece)

    def _read_piece(self, position: int, buffer: memoryview) -> memoryview:
        """Positions are aligned until the end of the file is met."""
        if self._direct is not None and position % ALIGNMENT == 0:
            try:
                return buffer[: os.preadv(self._direct, [buffer], position)]
            except OSError as error:
                self._give_up_direct(error)
        return buffer[: os.preadv(self.descriptor, [buffer], position)]

    def _write_direct(self, position: int, data: memoryview) -> int:
        """How much of it could be written so."""
        done, buffer = 0, memoryview(self._aligned)
        while done < len(data) and self._direct is not None:
            piece = data[done : done + BLOCK]
            buffer[: len(piece)] = piece  # TensorFlow's memory is not aligned enough
            try:
                count = os.pwrite(self._direct, buffer[: len(piece)], position + done)
            except OSError as error:
                self._give_up_direct(error)
                break
            done += count
            if count % ALIGNMENT:  # the disk is nearly full: the rest tells how
                break
        return done

    def _write_cached(self, position: int, left: memoryview) -> None:
        while left:
            count = os.pwrite(self.descriptor, left[:BLOCK], position)
            left, position = left[count:], position + count

    def _give_up_direct(self, error: OSError) -> None:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP) or self._direct is None:
            raise error
        os.close(self._direct)
        self._direct = None


def _open_direct(path: Path, flags: int) -> int | None:
    try:
        return os.open(path, flags | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:  # not every file system has it
        return None


class Region:
    """What zipfile and h5py take for a file: from `start` to where its own end has come."""

    def __init__(self, file: DiskFile, start: int = 0, size: int = 0) -> None:
        self.file = file
        self.start = start
        self.size = size
        self._position = 0
        self._written_already = False

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self._written_already:
            size = self.write_at(self._position, data)
        else:
            size = memoryview(data).nbytes
            self.size = max(self.size, self._position + size)
        self._position += size
        return size

    def write_at(self, position: int, data: Any) -> int:
        size = self.file.write(self.start + position, data)
        self.size = max(self.size, position + size)
        return size

    @contextmanager
    def written_already(self) -> Iterator[None]:
        """What is written within is there: only the position moves."""
        self._written_already = True
        try:
            yield
        finally:
            self._written_already = False

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(self.size - self._position, 0)]
        done = self.file.read_into(self.start + self._position, view)
        self._position += done
        return done

    def read(self, size: int = -1) -> bytes:
        left = max(self.size - self._position, 0)
        buffer = bytearray(left if size < 0 else min(size, left))
        return bytes(buffer[: self.readinto(buffer)])

    def blocks(self) -> Iterator[memoryview]:
        return self.file.blocks(self.start, self.size)

    def truncate(self, size: int | None = None) -> int:
        self.size = self._position if size is None else size
        os.ftruncate(self.file.descriptor, self.start + self.size)
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""
