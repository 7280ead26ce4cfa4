"""A process that stands above another, and ends with it all that it has started.

The guarded one can be the first process of a namespace, whose end is the kernel's business; where there is none, the
guard adopts what loses its parents, and ends it. SIGTERM makes it end everything; so does the end of its parent."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import struct
import subprocess
from collections.abc import Sequence

from . import namespaces, offspring
from .confinement import Means
from .kernel import PR_SET_PDEATHSIG, call, prctl

FOLDER = os.path.dirname(os.path.abspath(__file__))  # for starters of other Pythons
SYS_RT_SIGACTION = 13
HEARD = {signal.SIGCHLD, signal.SIGTERM}
STATUS = struct.Struct("<i")


def enter(means: Means, writable: Sequence[str], serves: bool = False) -> None:
    """Returns in the guarded process only, a child of this one. `serves`: it forks others and reaps what it is given,
    so that it can be the first of its namespace itself; the first cannot be killed by its own signals."""
    privileged = means.any_namespace and namespaces.leave(means.mounts, means.network, means.processes)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    offspring.adopt()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    told, tell = os.pipe()
    alive, living = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        os.close(alive)
        _close_all_but(told, living)
        _watch(child, told)
    os.close(told)
    os.close(living)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:  # the guard had gone before
        os._exit(1)
    os.close(alive)
    if means.mounts:
        namespaces.arrange(writable, means.processes)
    if privileged:
        namespaces.give_up_privileges()
    if means.processes and not serves:
        child = os.fork()
        if child:
            _close_all_but(tell)
            _be_first(child, tell)
    os.close(tell)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end(guard: subprocess.Popen[bytes], patience: float = 0.0) -> int:
    """Waits until all of it has gone; returns how the guarded one ended. `patience`: seconds to end by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return guard.wait(patience)
    guard.terminate()
    try:
        return guard.wait(offspring.ENDING_S + 1)
    except subprocess.TimeoutExpired:
        guard.kill()
        return guard.wait()


def end_by_number(guard: int) -> int:
    """The same for one that was forked; returns its wait status."""
    os.kill(guard, signal.SIGTERM)
    return os.waitpid(guard, 0)[1]


def _watch(child: int, told: int) -> None:
    """In the guard. Never returns."""
    while True:
        if signal.sigwaitinfo(HEARD).si_signo == signal.SIGTERM:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        status = _reaped(child)
        if status is not None:
            said = os.read(told, STATUS.size)
            _end_as(STATUS.unpack(said)[0] if len(said) == STATUS.size else status)


def _be_first(child: int, tell: int) -> None:
    """Of a namespace of processes. Never returns: with us, all of them end."""
    while True:
        signal.sigwaitinfo(HEARD)
        status = _reaped(child)
        if status is not None:
            os.write(tell, STATUS.pack(status))
            os._exit(0)


def _reaped(child: int) -> int | None:
    """The wait status of this one, once it has ended, after all below us. Others that were adopted go quietly."""
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
        if ended.si_pid == child:
            return offspring.end_all(child)
        os.waitpid(ended.si_pid, 0)
    return None


def _end_as(status: int) -> None:
    """In the same way, so that whoever waits for us sees it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # past the agent, for which this would be a crash
            call(SYS_RT_SIGACTION, number, bytes(32), None, 8)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _close_all_but(*kept: int) -> None:
    """Whoever waits for the end of a pipe must not wait for us."""
    start = 0
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, 1 << 20)
