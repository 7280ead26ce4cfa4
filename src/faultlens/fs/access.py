"""Who may read and write a file, and how a file that takes its place keeps that: nobody ever gets more than before."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

ACLS = ("system.posix_acl_access", "system.posix_acl_default", "system.nfs4_acl")
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.ENODATA, errno.ENOSYS, errno.EPERM, errno.EACCES)
_NOT_OURS_TO_SET = (errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # FAT and some network file systems: never


def take_over(old: Path, new: Path) -> bool:
    """`take_access`, and the user's extended attributes. What the kernel keeps for itself (`security.*`) stays its."""
    changed = take_access(old, new)
    there, wanted = _attributes(new, "user."), _attributes(old, "user.")
    _set_attributes(new, there, wanted)
    return changed or there != wanted


def take_access(old: Path, new: Path) -> bool:
    """Give `new` the owner, group, mode and ACL of `old`, as far as this process may. Whether that changed anything.

    For a moment it is open to others than `old` was: it must lie where nobody else can reach it."""
    before, wanted = new.stat(), old.stat()
    acl, wanted_acl = _attributes(new, ACLS), _attributes(old, ACLS)
    _set_mode(new, stat.S_IMODE(before.st_mode) & stat.S_IMODE(wanted.st_mode))  # what is given away may be lost to us
    if (before.st_uid, before.st_gid) != (wanted.st_uid, wanted.st_gid):
        _give(new, wanted.st_uid, wanted.st_gid)
    mode = stat.S_IMODE(wanted.st_mode) & (
        0o7777 if stat.S_ISDIR(wanted.st_mode) else 0o777
    )  # no setuid for new content
    if new.stat().st_gid != wanted.st_gid:
        mode, wanted_acl = _without_group(mode, bool(wanted_acl)), {}
    if not _set_attributes(new, acl, wanted_acl):
        mode &= ~0o077  # in a mode that comes with an ACL, the bits of the group are those of all that it names
    _set_mode(new, mode)
    after = new.stat()
    return acl != _attributes(new, ACLS) or any(
        getattr(before, name) != getattr(after, name) for name in ("st_uid", "st_gid", "st_mode")
    )


def narrow_folder(folder: Path, model: Path) -> None:
    """Close a folder to those who may not read (or write) the file or folder that its content belongs to."""
    kept, of_model = folder.stat(), model.stat()
    mode = stat.S_IMODE(of_model.st_mode)
    if not stat.S_ISDIR(of_model.st_mode):
        mode |= (mode & 0o444) >> 2  # who reads a file searches a folder
    if kept.st_gid != of_model.st_gid:
        mode = _without_group(mode, False)
    _set_mode(folder, stat.S_IMODE(kept.st_mode) & (mode | ~0o077))


def hand_over(path: Path, owner_of: Path) -> None:
    """What root made for others becomes theirs, like the file that it belongs to."""
    state, wanted = path.stat(), owner_of.stat()
    if state.st_uid == os.geteuid() != wanted.st_uid:
        _give(path, wanted.st_uid, wanted.st_gid)


def _give(path: Path, uid: int, gid: int) -> None:
    for owner in (uid, -1):  # only root gives a file away; a group may be any that one is in
        try:
            os.chown(path, owner, gid)
            return
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_SET:
                raise


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) == mode:
        return
    try:
        path.chmod(mode)
    except OSError as error:
        if error.errno not in _NOT_OURS_TO_SET:
            raise


def _without_group(mode: int, has_acl: bool) -> int:
    """Where the group cannot be kept: neither its members nor the others get what one of them did not have."""
    if has_acl:
        return mode & ~0o077
    both = (mode >> 3) & mode & 0o7
    return mode & ~0o077 | both << 3 | both


def _attributes(path: Path, names: str | tuple[str, ...]) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith(names)}
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return {}
        raise


def _set_attributes(path: Path, there: dict[str, bytes], wanted: dict[str, bytes]) -> bool:
    """Whether they could all be set. A save is not lost for an attribute."""
    try:
        for name in there.keys() - wanted.keys():
            os.removexattr(path, name)
        for name, value in wanted.items():
            if there.get(name) != value:
                os.setxattr(path, name, value)
    except OSError:
        return False
    return True
