"""Forked copies of a program that had threads, and what they wait for."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.clues.frames import package_of
from faultlens.clues.owners import owner_of
from faultlens.clues.waiting import waits_for
from faultlens.crash import Crash, Thread

_THREADED = ("tensorflow", "numpy", "package", "custom")  # whose locks and pools do not survive a fork
# A worker that waits here has nothing to do, which is no hang.
_IDLE = ("/multiprocessing/queues.py", "/multiprocessing/connection.py", "/concurrent/futures/process.py")


class ForkedChild(NamedTuple):
    child: Crash
    thread: Thread
    waiting: str
    inside: str | None  # the library below which it waits
    lacking: bool  # it has fewer threads than its parent


def stuck_child(crash: Crash) -> ForkedChild | None:
    """A copy of the program that waits for a lock or for threads that it does not have."""
    for child in crash.children:
        if not is_copy(child, crash) or len(crash.threads) <= 1:
            continue
        thread = child.launching_thread or next(iter(child.threads), None)
        waiting = waits_for(thread) if thread else None
        if thread is None or waiting is None or _is_idle(thread):
            continue
        inside = next((package_of(frame) for frame in thread.frames if owner_of(frame) in _THREADED), None)
        if inside or waiting in ("a mutex", "a lock"):
            return ForkedChild(child, thread, waiting, inside, len(child.threads) < len(crash.threads))
    return None


def is_copy(child: Crash, parent: Crash) -> bool:
    """Forked and never exec'ed: its libraries lie where those of its parent lie."""
    if child.program.command != parent.program.command or child.program.executable != parent.program.executable:
        return False
    places = {library.path: library.start for library in parent.libraries}
    shared = [library for library in child.libraries if library.path in places]
    return bool(shared) and all(places[library.path] == library.start for library in shared)


def _is_idle(thread: Thread) -> bool:
    innermost = next((frame for frame in thread.frames if frame.kind == "python"), None)
    return innermost is not None and (innermost.file or "").endswith(_IDLE)
