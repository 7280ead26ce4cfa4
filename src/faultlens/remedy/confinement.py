"""Keeps a trial from doing harm, through Landlock: it may write to its own folder only, send signals to itself only,
and connect to nothing.

A reduced program does what nobody ever wrote: a path is cut short, the line that set a variable is gone. Needs nothing
but the standard library, from Python 3.9 on, because it runs in the program's own Python as well."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct

# <linux/landlock.h>
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_ACCESS_FS_WRITE_FILE = 1 << 1
LANDLOCK_ACCESS_FS_REMOVE_DIR = 1 << 4  # the first of ten rights to make and remove names
LANDLOCK_ACCESS_FS_REFER = 1 << 13
LANDLOCK_ACCESS_FS_TRUNCATE = 1 << 14
LANDLOCK_ACCESS_NET_CONNECT_TCP = 1 << 1
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1 << 0, 1 << 1
PR_SET_NO_NEW_PRIVS = 38

# What versions of the interface brought.
WITH_REFER, WITH_TRUNCATE, WITH_NETWORK, WITH_SIGNALS = 2, 3, 4, 6

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def strength() -> int:
    """The version of Landlock that this kernel offers; 0 when there is none."""
    try:
        return _call(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    except OSError:
        return 0


def confine(writable: list[str]) -> None:
    """From now on, this thread and all it starts may write below these folders only. Raises OSError if it cannot be."""
    version = strength()
    writing = _writing(version)
    ruleset = struct.pack("<Q", writing)
    if version >= WITH_NETWORK:
        ruleset += struct.pack("<Q", LANDLOCK_ACCESS_NET_CONNECT_TCP)
    if version >= WITH_SIGNALS:
        ruleset += struct.pack("<Q", LANDLOCK_SCOPE_SIGNAL | LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    rules = _call(SYS_LANDLOCK_CREATE_RULESET, ruleset, len(ruleset), 0)
    try:
        for path in (*writable, "/dev/shm"):
            _allow(rules, path, writing)
        for path in ("/dev", "/proc/self"):  # devices, and names of threads
            _allow(rules, path, writing & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE))
        if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(SYS_LANDLOCK_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _writing(version: int) -> int:
    rights = LANDLOCK_ACCESS_FS_WRITE_FILE | (LANDLOCK_ACCESS_FS_REFER - LANDLOCK_ACCESS_FS_REMOVE_DIR)
    rights |= LANDLOCK_ACCESS_FS_REFER if version >= WITH_REFER else 0
    return rights | (LANDLOCK_ACCESS_FS_TRUNCATE if version >= WITH_TRUNCATE else 0)


def _allow(rules: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            _call(SYS_LANDLOCK_ADD_RULE, rules, LANDLOCK_RULE_PATH_BENEATH, struct.pack("<Qi", rights, folder), 0)
        finally:
            os.close(folder)


def _call(number: int, *arguments: int | bytes | None) -> int:
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *values))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
