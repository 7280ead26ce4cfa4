"""Name spaces of the kernel for this process: `os.unshare` came only with Python 3.12."""

from __future__ import annotations

import ctypes
import os

MOUNTS = 0x00020000  # CLONE_NEWNS: what is mounted from now on is seen by nobody else
NUMBERS = 0x20000000  # CLONE_NEWPID: the next child is number 1


def unshare(what: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(what):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
