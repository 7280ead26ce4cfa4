"""What a folder's file system has left, and whether we may write there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec.structs import replace

from faultlens.records.crash import Record
from faultlens.system.procfs import read_text

NETWORK = frozenset(("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "glusterfs", "9p", "afs", "beegfs"))


class Folder(Record, frozen=True):
    path: str
    exists: bool = True
    writable: bool = True
    size: int | None = None
    free: int | None = None  # for this user
    files_free: int | None = None  # how many more files it can hold; None where they are not counted
    read_only: bool = False
    file_system: str | None = None  # "ext4"

    @property
    def is_network(self) -> bool:
        return self.file_system in NETWORK

    def has_room(self, size: int, files: int) -> bool:
        return (self.free is None or self.free >= size) and (self.files_free is None or self.files_free >= files)


def look_at(path: Path | str) -> Folder:
    path = Path(path)
    try:
        state = os.statvfs(path)
    except OSError:
        return Folder(path=str(path), exists=False, writable=False)
    return Folder(
        path=str(path),
        exists=path.is_dir(),
        writable=os.access(path, os.W_OK | os.X_OK),
        size=state.f_blocks * state.f_frsize,
        free=state.f_bavail * state.f_frsize,
        files_free=state.f_favail if state.f_files else None,
        read_only=bool(state.f_flag & os.ST_RDONLY),
        file_system=_file_system(path),
    )


def nearest(path: Path) -> Path:
    """The folder itself, or the first above it that is there."""
    return next((level for level in (path, *path.parents) if level.is_dir()), path)


def would_be(path: Path) -> Folder:
    """A folder that may not be there yet: then what it would have where it is made."""
    return replace(look_at(nearest(path)), path=str(path), exists=path.is_dir())


def _file_system(path: Path) -> str | None:
    """Of the mount that lies deepest above it; the last one mounted there hides the others."""
    found, depth = None, 0
    real = os.path.realpath(path)
    for line in (read_text("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, details = left.split(), right.split()
        if len(fields) < 5 or not details:
            continue
        mount = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields[4])
        if len(mount) >= depth and (real + "/").startswith(mount.rstrip("/") + "/"):
            found, depth = details[0], len(mount)
    return found
