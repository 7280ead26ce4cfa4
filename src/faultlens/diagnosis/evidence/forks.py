"""Forked copies of a program that had threads, and what they wait for."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.diagnosis.evidence.locks import Blocked, blocked_threads, takers
from faultlens.inspection.frames import package_of
from faultlens.inspection.owners import owner_of
from faultlens.inspection.waiting import GIL, is_idle, wait_of
from faultlens.records.crash import Crash, Thread

_THREADED = ("tensorflow", "numpy", "package", "custom")  # whose locks and pools do not survive a fork


class ForkedChild(NamedTuple):
    child: Crash
    parent: Crash
    thread: Thread
    waiting: str
    inside: str | None  # the library below which it waits
    lacking: bool  # it has fewer threads than its parent
    lock: Blocked | None = None  # that no thread of the child holds …
    holder: Thread | None = None  # … and the thread of the parent that takes it, too


def stuck_child(crash: Crash) -> ForkedChild | None:
    """A copy of the program that waits for a lock or for threads that it does not have."""
    processes = {process.pid: process for process in (crash, *crash.children)}
    for child in crash.children:
        parent = processes.get(child.parent_pid, crash)
        if not is_copy(child, parent) or len(parent.threads) <= 1:
            continue
        thread = child.launching_thread or next(iter(child.threads), None)
        wait = wait_of(thread) if thread else None
        if thread is None or wait is None or wait == GIL or is_idle(thread):
            continue
        inside = next((package_of(frame) for frame in thread.frames if owner_of(frame) in _THREADED), None)
        lacking = len(child.threads) < len(parent.threads)
        lock = next((each for each in blocked_threads(child) if each.thread is thread), None)
        if lock is not None and lock.holder is not None:
            continue  # a thread that it does have
        if lock is not None or inside:
            holder = _holder(lock, parent) if lock else None
            return ForkedChild(child, parent, thread, wait.what, inside, lacking, lock, holder)
    return None


def is_copy(child: Crash, parent: Crash) -> bool:
    """Forked and never exec'ed: its libraries lie where those of its parent lie."""
    if child.program.command != parent.program.command or child.program.executable != parent.program.executable:
        return False
    places = {library.path: library.start for library in parent.libraries}
    shared = [library for library in child.libraries if library.path in places]
    return bool(shared) and all(places[library.path] == library.start for library in shared)


def _holder(lock: Blocked, parent: Crash) -> Thread | None:
    """A mutex that was copied still names the thread that had it; of others, the lines tell."""
    named = lock.thread.lock.holder if lock.thread.lock else None
    return next((thread for thread in parent.threads if thread.id == named), None) or next(
        iter(takers(lock, parent)), None
    )
