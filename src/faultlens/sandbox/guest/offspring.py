"""Ends all that a process has started, also what has left its session and its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from .kernel import PR_SET_CHILD_SUBREAPER, prctl

ENDING_S = 10.0


def adopt() -> None:
    """Processes below us whose parents have gone become ours."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_all(child: int) -> int:
    """All processes below us; returns the wait status of this one. Until it is reaped, its number is nobody else's."""
    status = 0
    deadline = time.monotonic() + ENDING_S
    with contextlib.suppress(ChildProcessError):  # there are no more
        while time.monotonic() < deadline:
            if os.getpid() == 1:  # all that are in our namespace, in one step
                _kill(-1)
            elif child:
                with contextlib.suppress(OSError):
                    os.killpg(child, signal.SIGKILL)  # in one step: nothing can fork away from it
            for pid in own_children():
                _kill(pid)
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid and pid == child:
                child, status = 0, how
            elif not pid:
                time.sleep(0.001)
    return status


def own_children() -> list[int]:
    with contextlib.suppress(OSError), open("/proc/thread-self/children") as file:
        return [int(each) for each in file.read().split()]
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
