"""Runs code that may crash, hang or eat memory in a forked child, and brings its result back."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from faultlens.inspection.siginfo import signal_name
from faultlens.system import own_process

P = ParamSpec("P")
T = TypeVar("T")

CHUNK = 1 << 20
DYING_S = 5.0  # what the end of a killed process may take
STACK = 120 << 20  # the kernel leaves at least 128 MB free below the stack


class IsolatedError(Exception):
    """The child died, took too long, or raised; the text says which."""


def run_isolated(seconds: float, memory: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`function(*args, **kwargs)` in a child that may run for `seconds` and allocate `memory` bytes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(writer, memory, lambda: function(*args, **kwargs))
    os.close(writer)
    try:
        data = _read_all(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        # It has nothing more to say: finished, dead, or over its time.
        os.kill(pid, signal.SIGKILL)
        status = _reaped(pid)
    if data is None:
        raise IsolatedError(f"took longer than {seconds:g} s")
    if not data:
        how = signal_name(os.WTERMSIG(status)) if status and os.WIFSIGNALED(status) else f"status {status}"
        raise IsolatedError(f"ended without a result ({how})")
    try:
        succeeded, result = pickle.loads(data)
    except Exception as error:
        raise IsolatedError("ended in the middle of its result") from error
    if not succeeded:
        raise IsolatedError(result)
    return result  # type: ignore[no-any-return]


def _reaped(pid: int) -> int | None:
    """None for one that does not even die: it waits for a disk that does not answer. We do not."""
    deadline = time.monotonic() + DYING_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.0005)
    return None


def _child(writer: int, memory: int, call: Callable[[], object]) -> None:
    """Never returns: nothing of the parent may run twice, neither `finally` blocks nor atexit."""
    try:
        _make_harmless(memory)
        try:
            answer = pickle.dumps((True, call()))
        except BaseException as error:
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        view = memoryview(answer)
        while view:
            view = view[os.write(writer, view) :]
    finally:
        os._exit(0)


def _make_harmless(memory: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and ends the child
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    faulthandler.disable()
    own_process.killed_first()
    own_process.no_core_file()
    with contextlib.suppress(ValueError, OSError):  # pystack follows a deep recursion recursively
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)


def _read_all(reader: int, deadline: float) -> bytes | None:
    """Everything until the other end closes; None when that takes too long."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        part = os.read(reader, CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
