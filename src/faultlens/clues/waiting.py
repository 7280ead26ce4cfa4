"""What a thread that makes no progress waits for, judged by the innermost frames of its stack."""

from __future__ import annotations

import re

from faultlens.clues.frames import short_function
from faultlens.crash import Thread

_REACH = 25  # a wait inside of TensorFlow goes through this many frames at most
# The first row that matches one of the innermost frames says what is waited for.
_WAITS = {
    "a mutex": r"^_*(?:GI_+)?pthread_mutex_\w*lock|^std::mutex::lock",
    "a lock": r"lll_\w*lock",
    "work on other threads": r"Notification::WaitForNotification|BlockingCounter::Wait|Barrier::Wait",
    "a lock or signal of TensorFlow's threads": r"Mutex::(?:Block|Lock)|nsync_|CondVar::Wait|FutexWaiter",
    "other OpenMP threads": r"gomp_(?:team_)?barrier|__kmp_\w*(?:wait|barrier|suspend)",
    "a semaphore": r"sem_\w*wait|^do_futex_wait|_multiprocessing_SemLock",
    "another thread": r"pthread_cond_|futex_\w*wait|^futex_wait",
    "a child process": r"waitpid|wait4|^os_wait",
    "input from a pipe, socket or file": r"^_*(?:GI_+)?(?:libc_)?(?:poll|select|epoll_wait|read|recv\w*|accept\w*)$",
    "time to pass": r"nanosleep|^time_sleep|^pysleep",
}
_PATTERNS = {what: re.compile(pattern) for what, pattern in _WAITS.items()}
_PYTHON_LOCK = re.compile(r"^(?:lock_PyThread_acquire_lock|PyThread_acquire_lock|rlock_acquire|acquire_timed)")
_BLOCKED = re.compile(r"^syscall$|" + "|".join(_WAITS.values()))


def waits_for(thread: Thread) -> str | None:
    """None where the innermost frame is no wait: the thread was running."""
    native = [short_function(frame.function) for frame in thread.frames[:_REACH] if frame.kind == "native"]
    if not native or thread.frames[0].kind != "native" or not _BLOCKED.search(native[0]):
        return None
    if any(_PYTHON_LOCK.search(name) for name in native[:8]):
        return "a Python lock (a queue, an event or another thread)"
    for what, pattern in _PATTERNS.items():
        if any(pattern.search(name) for name in native):
            return what
    return "another thread or process"
