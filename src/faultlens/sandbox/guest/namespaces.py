"""Namespaces of its own: file systems that cannot be written to, no network, no other processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Sequence

from .capabilities import CAP_SYS_ADMIN, keep, permitted
from .devices import devices
from .kernel import PR_SET_DUMPABLE, call, checked, libc, prctl

# <linux/sched.h>, <linux/mount.h>, <linux/fcntl.h>
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NODEV = 1, 4

SHARED_MEMORY = "/dev/shm"
MOST_KEPT = 256  # files in it that stay readable
OF_ROOT = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")  # in /proc: these change the machine


def enter(writable: Sequence[str]) -> None:
    """Of files and the network, without a guard, for a process that will start sandboxes itself."""
    privileged = leave(mounts=True, network=True, processes=False)
    arrange(writable, processes=False)
    if privileged:
        give_up_privileges()


def leave(mounts: bool, network: bool, processes: bool) -> bool:
    """This process leaves the namespaces of its parent; for `processes`, what it forks does. True: it has become the
    root of a user namespace for it, and has privileges there to give up. Must be its only thread."""
    flags = (CLONE_NEWNS if mounts else 0) | (CLONE_NEWNET | CLONE_NEWIPC if network else 0)
    flags |= CLONE_NEWPID if processes else 0
    if permitted() >> CAP_SYS_ADMIN & 1:
        checked(libc.unshare(flags))
        return False
    user, group = os.geteuid(), os.getegid()
    checked(libc.unshare(flags | CLONE_NEWUSER))
    prctl(PR_SET_DUMPABLE, 1)  # or its files in /proc belong to root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def arrange(writable: Sequence[str], processes: bool) -> None:
    """Nothing can be written to, not even its mode or owner, but these folders and a shared memory of its own."""
    here = os.getcwd()
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    folders = {os.path.realpath(path): _tree(os.path.realpath(path)) for path in writable}
    usable = {path: _tree(path) for path in devices() if not os.path.islink(path)}
    memory = _own_shared_memory()
    if processes:
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path, tree in folders.items():
        os.makedirs(path, exist_ok=True)
        _attach(tree, path)
    _set("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, recursively=True)
    for path, tree in usable.items():
        _attach(tree, path)
    for path in (*folders, *memory, "/proc"):
        _set(path, cleared=MOUNT_ATTR_RDONLY)
    if os.geteuid() == 0:
        for name in OF_ROOT:
            with contextlib.suppress(FileNotFoundError):
                _attach(_tree(f"/proc/{name}"), f"/proc/{name}")
                _set(f"/proc/{name}", MOUNT_ATTR_RDONLY)
    os.chdir(here)  # through the new mounts


def give_up_privileges() -> None:
    keep(0)


def _own_shared_memory() -> list[str]:
    """As large as the other: programs die of one that is full. What lies there already can be read on."""
    if not os.path.isdir(SHARED_MEMORY):
        return []
    room = os.statvfs(SHARED_MEMORY)
    kept = {}
    for entry in list(os.scandir(SHARED_MEMORY))[:MOST_KEPT]:
        with contextlib.suppress(OSError):
            kept[entry.path] = _tree(entry.path), stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)
    _mount("tmpfs", SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={room.f_blocks * room.f_frsize}")
    for path, (tree, folder) in kept.items():
        if folder:
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            _attach(tree, path)
        except FileNotFoundError:  # its owner removed it meanwhile: OpenMP does at the end of every process
            (os.rmdir if folder else os.unlink)(path)
    return [SHARED_MEMORY]


def _tree(path: str) -> int:
    """What is mounted there, to be mounted once more."""
    return call(SYS_OPEN_TREE, AT_FDCWD, os.fsencode(path), OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)


def _attach(tree: int, path: str) -> None:
    try:
        call(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)


def _set(path: str, attributes: int = 0, cleared: int = 0, recursively: bool = False) -> None:
    described = struct.pack("<4Q", attributes, cleared, 0, 0)
    flags = AT_RECURSIVE if recursively else 0
    call(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, described, len(described))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [each and each.encode() for each in (source, target, kind, options)]
    checked(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]))
