"""Landlock: where a process may write, whom it may connect and send signals to."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from .devices import devices
from .kernel import PR_SET_NO_NEW_PRIVS, call, prctl

# <linux/landlock.h>
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_ACCESS_FS_WRITE_FILE = 1 << 1
LANDLOCK_ACCESS_FS_REMOVE_DIR = 1 << 4  # the first of ten rights to make and remove names
LANDLOCK_ACCESS_FS_MAKE_CHAR, LANDLOCK_ACCESS_FS_MAKE_BLOCK = 1 << 6, 1 << 11
LANDLOCK_ACCESS_FS_REFER = 1 << 13
LANDLOCK_ACCESS_FS_TRUNCATE = 1 << 14
LANDLOCK_ACCESS_FS_IOCTL_DEV = 1 << 15
LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP = 1 << 0, 1 << 1
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1 << 0, 1 << 1

# What versions of the interface brought.
WITH_REFER, WITH_TRUNCATE, WITH_NETWORK, WITH_DEVICES, WITH_SIGNALS = 2, 3, 4, 5, 6


def version() -> int:
    """Of the interface that this kernel offers; 0 when there is none."""
    try:
        return call(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(version: int, writable: Sequence[str]) -> None:
    """From now on, this thread and all it starts may write below these folders only."""
    writing = _writing(version)
    ruleset = struct.pack("<Q", writing)
    if version >= WITH_NETWORK:
        ruleset += struct.pack("<Q", LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP)
    if version >= WITH_SIGNALS:
        ruleset += struct.pack("<Q", LANDLOCK_SCOPE_SIGNAL | LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    rules = call(SYS_LANDLOCK_CREATE_RULESET, ruleset, len(ruleset), 0)
    no_devices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_IOCTL_DEV
    to_files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV
    try:
        for path in (*writable, "/dev/shm"):
            _allow(rules, path, writing & ~no_devices)
        for path in (*devices(), "/proc/self"):  # with the names of threads
            _allow(rules, path, writing & to_files)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        call(SYS_LANDLOCK_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _writing(version: int) -> int:
    rights = LANDLOCK_ACCESS_FS_WRITE_FILE | (LANDLOCK_ACCESS_FS_REFER - LANDLOCK_ACCESS_FS_REMOVE_DIR)
    rights |= LANDLOCK_ACCESS_FS_REFER if version >= WITH_REFER else 0
    rights |= LANDLOCK_ACCESS_FS_TRUNCATE if version >= WITH_TRUNCATE else 0
    return rights | (LANDLOCK_ACCESS_FS_IOCTL_DEV if version >= WITH_DEVICES else 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):
            rights &= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV
        call(SYS_LANDLOCK_ADD_RULE, rules, LANDLOCK_RULE_PATH_BENEATH, struct.pack("<Qi", rights, place), 0)
    finally:
        os.close(place)
