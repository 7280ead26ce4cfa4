"""What this machine can hold a process with, how it is done, and what it cannot hold."""

from __future__ import annotations

import functools
import os
import signal
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from . import capabilities, devices, landlock, namespaces, seccomp

PROBE_S = 10


class Means(NamedTuple):
    landlock: int = 0  # the version of its interface
    seccomp: bool = False
    # Namespaces of its own:
    mounts: bool = False
    network: bool = False
    processes: bool = False

    @property
    def any_namespace(self) -> bool:
        return self.mounts or self.network or self.processes

    @property
    def holds_files(self) -> bool:
        return self.mounts or self.landlock >= landlock.WITH_TRUNCATE

    @property
    def holds_signals(self) -> bool:
        return self.processes or self.landlock >= landlock.WITH_SIGNALS

    def not_held(self) -> tuple[str, ...]:
        """What a program in the sandbox could do to the machine, in words that follow "it could"."""
        files = "write to files elsewhere" if not self.landlock else "cut files elsewhere short"
        found = {
            files: self.holds_files,
            "change modes, owners and times of files elsewhere": self.mounts or self.seccomp,
            "reach other programs through /dev/shm": self.mounts,
            "use the network": self.network or self.seccomp,
            "connect to UNIX sockets": self.seccomp,
            "send signals to other processes": self.holds_signals,
            "look into other processes": self.processes or self.seccomp or self.landlock,
        }
        return tuple(words for words, held in found.items() if not held)


@functools.lru_cache(maxsize=1)
def available() -> Means:
    """What works here, tried once, by a process that ends at once."""
    means = without_namespaces()
    for names in (("mounts", "network", "processes"), ("mounts", "network"), ("network",)):
        wanted = means._replace(**dict.fromkeys(names, True))
        if _works(wanted):
            return wanted
    return means


def without_namespaces() -> Means:
    return Means(landlock.version(), seccomp.offered())


def confine(means: Means, writable: Sequence[str]) -> None:
    """From now on, this thread and all it starts may write below these folders only, reach nobody and change nothing
    else. Raises OSError if it cannot be."""
    program = filter_for_children(means) if filter_for_children.cache_info().currsize else _filter(means, os.getppid())
    has = capabilities.permitted()
    if has & ~capabilities.ON_FILES:
        capabilities.keep(has & capabilities.ON_FILES, inheritable=True)
    if means.landlock:
        landlock.restrict(means.landlock, writable)
    if means.seccomp:
        seccomp.install(program)
    available.cache_clear()  # it can do less now


@functools.lru_cache(maxsize=1)
def filter_for_children(means: Means) -> bytes:
    """Made once by a process that forks many; together with the list of devices, it takes milliseconds."""
    devices.devices()
    return _filter(means, os.getpid())


def _filter(means: Means, parent: int) -> bytes:
    held = (means.mounts, means.network, means.processes, means.landlock > 0, means.holds_signals)
    return seccomp.program_of(seccomp.rules(*held, spared=seccomp.lineage(parent)))


def in_words(not_held: Sequence[str]) -> str:
    """One line for people; empty when there is nothing to say."""
    if not not_held:
        return ""
    return f"This kernel confines less than it should: what was run here could {'; '.join(not_held)}."


def _works(means: Means) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(PROBE_S)
            _try(means)
            os._exit(0)
        except OSError:
            pass
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _try(means: Means) -> None:
    namespaces.leave(means.mounts, means.network, means.processes)
    if not means.mounts:
        return
    if means.processes:
        child = os.fork()
        if child:
            if os.waitpid(child, 0)[1]:
                raise OSError
            return
    namespaces.arrange([tempfile.gettempdir()], means.processes)
    os._exit(0)
