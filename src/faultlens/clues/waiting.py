"""What a thread that makes no progress waits for, judged by the innermost frames of its stack."""

from __future__ import annotations

import re

from faultlens.clues.frames import short_function
from faultlens.crash import Thread

_REACH = 25  # a wait inside of TensorFlow goes through this many frames at most
# Innermost first: the first row that matches one of the frames says what is waited for.
_WAITS = (
    (re.compile(r"^(?:__pthread_mutex_\w*lock|pthread_mutex_lock|___pthread_mutex_lock|std::mutex::lock)"), "a mutex"),
    (re.compile(r"^(?:__lll_lock_wait\w*|__GI___lll_lock_wait|lll_\w*lock\w*)"), "a lock"),
    (re.compile(r"Notification::WaitForNotification|BlockingCounter::Wait|Barrier::Wait"), "work on other threads"),
    (re.compile(r"Mutex::(?:Block|Lock)|nsync_|CondVar::Wait|FutexWaiter"), "a lock or signal of TensorFlow's threads"),
    (re.compile(r"gomp_(?:team_)?barrier|__kmp_\w*(?:wait|barrier|suspend)"), "other OpenMP threads"),
    (re.compile(r"^(?:__?pthread_cond_\w*wait|pthread_cond_\w+|__futex_abstimed_wait\w*|futex_wait\w*)"), "another thread"),
    (re.compile(r"^(?:lock_PyThread_acquire_lock|acquire_timed|PyThread_acquire_lock\w*|rlock_acquire)"), "a Python lock"),
    (re.compile(r"^(?:sem_\w*wait|__new_sem_wait\w*|do_futex_wait\w*|_multiprocessing_SemLock\w*)"), "a semaphore"),
    (re.compile(r"^(?:__?waitpid|wait4|__GI___wait4|os_wait\w*)"), "a child process"),
    (re.compile(r"^(?:__?poll|__?select|epoll_wait|__?read|recv\w*|accept\w*)$"), "input from a pipe, socket or file"),
    (re.compile(r"^(?:clock_nanosleep|__?nanosleep|time_sleep|pysleep)"), "time to pass"),
)  # fmt: skip
_BLOCKED = re.compile(
    r"futex|lll_lock|mutex|cond_\w*wait|sem_\w*wait|^syscall$|wait4|waitpid|^__?poll$|select|epoll|^(?:__)?(?:GI_)*_?_?read$"
    r"|recv|accept|nanosleep|FutexWaiter|barrier"
)


def waits_for(thread: Thread) -> str | None:
    """None where the innermost frame is no wait: the thread was running."""
    native = [short_function(frame.function) for frame in thread.frames[:_REACH] if frame.kind == "native"]
    if not native or thread.frames[0].kind != "native" or not _BLOCKED.search(native[0]):
        return None
    if native[0].startswith(("lock_PyThread", "PyThread")):
        return "a Python lock"
    for python_lock in ("lock_PyThread_acquire_lock", "PyThread_acquire_lock_timed"):
        if python_lock in native[:8]:
            return "a Python lock (a queue, an event or another thread)"
    for pattern, what in _WAITS:
        if any(pattern.search(name) for name in native):
            return what
    return "another thread or process"
