"""Settings of this very process, for those that are forked for one purpose. Guest code: sandbox/guest/limits.py."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15


def die_with_parent() -> None:
    """Forgotten by the kernel when the process takes another user. A parent that has ended before is not noticed."""
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def killed_first() -> None:
    """If memory runs out, the kernel takes this process, not the program that it serves."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def no_core_file() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def not_dumpable() -> None:
    """No core file either where the kernel hands them to a program, which asks for no limit."""
    _prctl(PR_SET_DUMPABLE, 0)


def named(name: bytes) -> None:
    """As `ps` and /proc show the thread; 15 bytes at most."""
    _prctl(PR_SET_NAME, name)


def _prctl(option: int, value: int | bytes) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
