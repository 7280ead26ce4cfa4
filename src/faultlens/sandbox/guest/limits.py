"""What keeps a process that may go wrong from harming the machine."""

from __future__ import annotations

import contextlib
import os
import resource
import signal

from .kernel import PR_SET_PDEATHSIG, prctl


def no_core_file() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def at_most_written(size: int) -> None:
    """Bytes of any file."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if hard == resource.RLIM_INFINITY or hard > size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def killed_first() -> None:
    """If the kernel has to choose when memory runs out."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def die_with(parent: int) -> None:
    """Ends with its parent, also if that has ended already."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
