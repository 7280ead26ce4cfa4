"""Which of root's privileges a process has, and how it gives them up."""

from __future__ import annotations

import ctypes
import struct

from .kernel import call

# <linux/capability.h>
SYS_CAPGET, SYS_CAPSET = 125, 126
VERSION_3 = 0x20080522
CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID = range(5)
CAP_SETUID, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 7, 19, 21, 24
# What root can do to files, as far as they can be written to at all.
ON_FILES = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH | 1 << CAP_FOWNER | 1 << CAP_FSETID


def permitted() -> int:
    sets = ctypes.create_string_buffer(24)
    call(SYS_CAPGET, _header(), ctypes.addressof(sets))
    low, high = struct.unpack("<4x I 8x I 4x", sets.raw)
    return int(low | high << 32)


def keep(capabilities: int, inheritable: bool = False) -> None:
    """Only these. `inheritable`: they may be made ambient, for programs that are started."""
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    passed_on = (low, high) if inheritable else (0, 0)
    call(SYS_CAPSET, _header(), struct.pack("<6I", low, low, passed_on[0], high, high, passed_on[1]))


def _header() -> bytes:
    return struct.pack("<Ii", VERSION_3, 0)
