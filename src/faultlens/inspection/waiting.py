"""What a thread waits for, judged by the innermost frames of its stack."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from faultlens.inspection.frames import is_own, short_function
from faultlens.records.crash import Thread

# Who can end the wait: whoever has a lock; threads of a library; somebody who has something to hand over; a thread or a
# process that is to end; whoever writes to, or reads from, the other end of a pipe or socket; nobody but the clock.
WaitKind = Literal["lock", "workers", "results", "thread", "process", "input", "output", "time", "unknown"]

_REACH = 25  # a wait inside of TensorFlow goes through this many frames at most
_INNERMOST = 8
# The first row that matches one of the innermost frames says what is waited for.
_WAITS: dict[str, tuple[WaitKind, str]] = {
    "a mutex": ("lock", r"^_*(?:GI_+)?pthread_mutex_\w*lock|^std::mutex::lock"),
    "a lock for readers and writers": ("lock", r"^_*(?:GI_+)?pthread_rwlock_\w*lock"),
    "a lock": ("lock", r"lll_\w*lock"),
    "work on other threads": ("workers", r"Notification::WaitForNotification|BlockingCounter::Wait|Barrier::Wait"),
    "a lock or signal of TensorFlow's threads": (
        "workers",
        r"Mutex::(?:Block|Lock)|nsync_|CondVar::Wait|FutexWaiter",
    ),
    "other OpenMP threads": ("workers", r"gomp_(?:team_)?barrier|__kmp_\w*(?:wait|barrier|suspend)"),
    "a semaphore": ("results", r"sem_\w*wait|^do_futex_wait|_multiprocessing_SemLock"),
    "another thread": ("workers", r"pthread_cond_|futex_\w*wait|^futex_wait"),
    "a child process": ("process", r"waitpid|wait4|^os_wait"),
    "input from a pipe, socket or file": (
        "input",
        r"^_*(?:GI_+)?(?:libc_)?(?:poll|select|epoll_wait|read|recv\w*|accept\w*)$",
    ),
    "a file to open: a named pipe waits for the other side": ("input", r"^_*(?:GI_+)?(?:libc_)?open(?:at)?(?:64)?$"),
    "somebody to read what it writes": ("output", r"^_*(?:GI_+)?(?:libc_)?(?:writev?|send(?:to|msg)?)$"),
    "time to pass": ("time", r"nanosleep|^time_sleep|^pysleep"),
}
_PATTERNS = {what: re.compile(pattern) for what, (_, pattern) in _WAITS.items()}
_BLOCKED = re.compile(r"^syscall$|" + "|".join(pattern for _, pattern in _WAITS.values()))
_PYTHON_LOCK = re.compile(
    r"^(?:lock_PyThread_acquire_lock|PyThread_acquire_lock|rlock_acquire|acquire_timed|_?PyMutex_Lock|_PyParkingLot_Park)"
)
_GIL = re.compile(r"^(?:take_gil|PyEval_RestoreThread|PyGILState_Ensure|PyEval_AcquireThread|_PyThreadState_Attach)$")
# Python's own code between the user's call and the lock in which it waits: the outermost that matches tells.
_CALLS: tuple[tuple[str, str, str, WaitKind], ...] = (
    ("/threading.py", r"join|_wait_for_tstate_lock|_join_thread", "another thread to end", "thread"),
    ("/threading.py", r"wait|wait_for", "an event or a condition", "results"),
    ("/threading.py", r"acquire|__enter__", "a semaphore or condition", "results"),
    ("/queue.py", r"get", "an item in a queue", "results"),
    ("/queue.py", r"put", "room in a queue", "results"),
    ("/queue.py", r"join", "a queue to be worked off", "results"),
    ("/concurrent/futures/_base.py", r"result|exception|wait|as_completed", "the result of a future", "results"),
    ("/multiprocessing/pool.py", r"\w+", "the results of a pool", "results"),
    ("/multiprocessing/queues.py", r"get|put|join", "a queue between processes", "results"),
    ("/multiprocessing/connection.py", r"\w+", "word from another process", "results"),
    ("/multiprocessing/process.py", r"join", "a child process", "process"),
    ("/subprocess.py", r"wait|_wait|communicate|_communicate|run|call|check_\w+", "a child process", "process"),
)


# Processes that multiprocessing keeps for itself.
_HELPERS = ("/multiprocessing/resource_tracker.py", "/multiprocessing/forkserver.py")
# A worker that waits here has nothing to do, which is no hang.
_IDLE = ("/multiprocessing/queues.py", "/multiprocessing/connection.py", "/concurrent/futures/process.py")


class Wait(NamedTuple):
    what: str  # "a mutex"
    kind: WaitKind


GIL = Wait("the interpreter lock (GIL)", "lock")
PYTHON_LOCK = Wait("a Python lock", "lock")


def wait_of(thread: Thread) -> Wait | None:
    """None where the innermost frame is no wait: the thread was running."""
    native = [short_function(frame.function) for frame in thread.frames[:_REACH] if frame.kind == "native"]
    if not native:
        return _python_wait(thread)  # where native frames could not be read
    if thread.frames[0].kind != "native" or not _BLOCKED.search(native[0]):
        return None
    if any(_GIL.search(name) for name in native[:_INNERMOST]):
        return GIL
    if any(_PYTHON_LOCK.search(name) for name in native[:_INNERMOST]):
        return _python_wait(thread) or PYTHON_LOCK
    for what, pattern in _PATTERNS.items():
        if any(pattern.search(name) for name in native):
            found = Wait(what, _WAITS[what][0])
            if found.kind == "output" and thread.call is not None and thread.call.target == "file":
                return None  # a disk takes it, sooner or later
            return found if found.kind in ("lock", "workers", "output") else _python_wait(thread) or found
    return Wait("another thread or process", "unknown")


def waits_for(thread: Thread) -> str | None:
    wait = wait_of(thread)
    return wait.what if wait else None


def is_idle(thread: Thread) -> bool:
    """It waits for something to do."""
    wait, innermost = wait_of(thread), next((frame for frame in thread.frames if frame.kind == "python"), None)
    if wait is None or wait.kind == "output" or innermost is None:
        return False
    return (innermost.file or "").endswith(_IDLE) or is_idle_in_pool(thread)


def is_helper(thread: Thread) -> bool:
    """Of a process that multiprocessing keeps for itself."""
    return any((frame.file or "").endswith(_HELPERS) for frame in thread.frames)


def is_idle_in_pool(thread: Thread) -> bool:
    """A worker of multiprocessing.Pool that waits for its next task."""
    python = [frame for frame in thread.frames if frame.kind == "python"]
    files = [(frame.file or "").rpartition("/multiprocessing/")[2] for frame in python]
    at = next((at for at, frame in enumerate(python) if (files[at], frame.function) == ("pool.py", "worker")), None)
    return at is not None and at > 0 and (files[at - 1], python[at - 1].function) == ("queues.py", "get")


def _python_wait(thread: Thread) -> Wait | None:
    found = None
    for frame in thread.frames:
        if frame.kind != "python":
            continue
        if is_own(frame):
            break
        for file, functions, what, kind in _CALLS:
            if (frame.file or "").endswith(file) and re.fullmatch(functions, frame.function):
                found = Wait(what, kind)
                break
    return found
