"""How a file is written so that nobody ever sees half of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_synced(path: Path, data: bytes, mode: int = 0o666, folder: int | None = None) -> None:
    """Create the file with this content and have it on the disk when this returns. `folder`: a descriptor of the one
    that a relative path begins in."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Put the content under this name in one step; an earlier file stays whole until then."""
    replace_name(path.resolve(), data, mode)  # a link keeps pointing where it pointed


def replace_name(path: Path, data: bytes, mode: int = 0o666) -> None:
    """As replace_file, but what stood under the name is not followed: another user may have put a link there."""
    # Not by the process id: programs in different containers or on different machines may have the same one.
    sibling = path.with_name(f".{path.name[:200]}.{os.urandom(8).hex()}")
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
