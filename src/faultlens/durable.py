"""How a file is written so that nobody ever sees half of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_synced(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Create the file with this content and have it on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Put the content under this name in one step; an earlier file stays whole until then."""
    path = path.resolve()  # a link keeps pointing where it pointed
    sibling = path.with_name(f".{path.name[:200]}.{os.getpid()}")
    try:
        write_synced(sibling, data, mode)
        sibling.rename(path)
    finally:
        sibling.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Names are kept in the folder: they are safe only when it has been written too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems sync names by themselves, and refuse to be asked
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
