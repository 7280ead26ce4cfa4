"""Bounds how many processes and threads a program can have: one that forks without end would bury the machine before
anybody could end it."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import NamedTuple

from .capabilities import CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_RESOURCE, keep, permitted
from .kernel import PR_SET_DUMPABLE, PR_SET_KEEPCAPS, libc, prctl

PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
# Without these, a process of another user could not read what root can, and nobody could look at its death.
NEEDED = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETUID | 1 << CAP_SYS_PTRACE
EXEMPT = 1 << CAP_SYS_ADMIN | 1 << CAP_SYS_RESOURCE
FIRST_USER = 0x70000000  # above all that are in use
TASKS, TASKS_PER_CPU = 256, 8  # TensorFlow has some for each CPU
OTHERS = 1024  # that the same user may start meanwhile, besides the other decoders


class Limit(NamedTuple):
    tasks: int
    user: int | None  # that root is to become


def limit_here() -> Limit:
    """The limit of the kernel holds for each user, and not for root: where root can, it becomes a user of its own."""
    cpus = os.cpu_count() or 1
    tasks = TASKS + TASKS_PER_CPU * cpus
    if os.geteuid() == 0:
        return Limit(tasks, FIRST_USER + os.getpid())
    return Limit(tasks + _tasks_of(os.getuid()) + OTHERS + TASKS_PER_CPU * cpus**2, None)


def at_most(limit: Limit) -> None:
    """Where root cannot become another, there is no limit."""
    with contextlib.suppress(OSError, ValueError):
        if limit.user is not None and not _become(limit.user):
            return
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        if hard == resource.RLIM_INFINITY or limit.tasks < hard:
            resource.setrlimit(resource.RLIMIT_NPROC, (limit.tasks, limit.tasks))


def _become(user: int) -> bool:
    """One that may do the same as root, but not more than the limit."""
    capabilities = permitted()
    if capabilities & NEEDED != NEEDED:
        return False
    for name, value in (("HOME", "/root"), ("LOGNAME", "root")):
        os.environ.setdefault(name, value)  # its number is in no list of users
    prctl(PR_SET_KEEPCAPS, 1)
    os.setresuid(user, user, user)
    kept = capabilities & ~EXEMPT
    keep(kept, inheritable=True)
    for number in range(kept.bit_length()):  # programs that are started keep them as well
        if kept >> number & 1:
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0)
    prctl(PR_SET_DUMPABLE, 1)
    return True


def _tasks_of(user: int) -> int:
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat("/proc/" + name).st_uid == user:
                total += len(os.listdir(f"/proc/{name}/task"))
    return total
