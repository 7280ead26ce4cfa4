"""Bounds how many processes and threads a decoder can have: one that forks without end would bury the machine before
anybody could end it. Needs nothing but the standard library, from Python 3.9 on."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct

# <linux/capability.h>, <linux/prctl.h>
SYS_CAPGET, SYS_CAPSET = 125, 126
CAPABILITIES_3 = 0x20080522
CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 1, 7, 19, 21, 24
PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 4, 8, 47, 2
# Without these, a process of another user could not read what root can, and nobody could look at its death.
NEEDED = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETUID | 1 << CAP_SYS_PTRACE
EXEMPT = 1 << CAP_SYS_ADMIN | 1 << CAP_SYS_RESOURCE
FIRST_USER = 0x70000000  # above all that are in use
TASKS, TASKS_PER_CPU = 256, 8  # TensorFlow has some for each CPU
OTHERS = 1024  # that the same user may start meanwhile, besides the other decoders

libc = ctypes.CDLL(None, use_errno=True)


def at_most_some() -> None:
    """The limit of the kernel holds for each user, and not for root: where root can, it becomes a user of its own that
    may do the same. Where that cannot be, there is no limit."""
    cpus = os.cpu_count() or 1
    wanted = TASKS + TASKS_PER_CPU * cpus
    with contextlib.suppress(OSError, ValueError):
        if os.geteuid() == 0:
            if not _become_another():
                return
        else:
            wanted += _tasks_of(os.getuid()) + OTHERS + TASKS_PER_CPU * cpus**2
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_NPROC, (wanted, wanted))


def _become_another() -> bool:
    capabilities = permitted()
    if capabilities & NEEDED != NEEDED:
        return False
    for name, value in (("HOME", "/root"), ("LOGNAME", "root")):
        os.environ.setdefault(name, value)  # its number is in no list of users
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    user = FIRST_USER + os.getpid()
    os.setresuid(user, user, user)
    _keep(capabilities & ~EXEMPT)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    return True


def permitted() -> int:
    sets = ctypes.create_string_buffer(24)
    if libc.syscall(SYS_CAPGET, _header(), sets):
        raise OSError(ctypes.get_errno(), "capget")
    low, high = struct.unpack("<4x I 8x I 4x", sets.raw)
    return int(low | high << 32)


def _keep(capabilities: int) -> None:
    """Programs that are started keep them as well."""
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = ctypes.create_string_buffer(struct.pack("<6I", low, low, low, high, high, high), 24)
    if libc.syscall(SYS_CAPSET, _header(), sets):
        raise OSError(ctypes.get_errno(), "capset")
    for number in range(capabilities.bit_length()):
        if capabilities >> number & 1:
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0)


def _header() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("<Ii", CAPABILITIES_3, 0))


def _tasks_of(user: int) -> int:
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat("/proc/" + name).st_uid == user:
                total += len(os.listdir(f"/proc/{name}/task"))
    return total
