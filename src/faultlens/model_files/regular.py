"""Opening foreign files without waiting for pipes, devices or more memory than was meant."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MAX_WHOLE = 512 << 20


class UnreadError(OSError):
    """There is more of it than is looked at: nothing can be said."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, or OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield file


def whole(path: Path) -> memoryview:
    """All bytes of a file that is small by nature. Nothing is mapped: a file that shrinks meanwhile would kill us."""
    with opened(path) as file:
        contents = file.read(MAX_WHOLE + 1)
    if len(contents) > MAX_WHOLE:
        raise UnreadError(f"{path} is larger than {MAX_WHOLE >> 20} MiB")
    return memoryview(contents)


def size_of(path: Path) -> int | None:
    """None where there is no regular file."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None
