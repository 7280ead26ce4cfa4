"""Stops all threads of a process for a moment (ptrace) and reads their registers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from pathlib import Path

PTRACE_GETREGS = 12
PTRACE_DETACH = 17
PTRACE_GETSIGINFO = 0x4202
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000  # __WALL: wait for threads too
STOP_TIMEOUT_S = 0.5
SIGINFO_SIZE = 128

# struct user_regs_struct, <sys/user.h>
USER_REGS = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi "
    "orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs"
).split()

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _ptrace(request, thread, address, data) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def registers_of(thread: int) -> dict[str, int]:
    buffer = (ctypes.c_uint64 * len(USER_REGS))()
    ptrace(PTRACE_GETREGS, thread, 0, ctypes.addressof(buffer))
    return dict(zip(USER_REGS, (int(value) for value in buffer), strict=True))


def siginfo_of(thread: int) -> bytes:
    buffer = ctypes.create_string_buffer(SIGINFO_SIZE)
    ptrace(PTRACE_GETSIGINFO, thread, 0, ctypes.addressof(buffer))
    return buffer.raw


def thread_ids(pid: int) -> list[int]:
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


class Freeze:
    """Holds a process still while it is looked at. `problem` says why it could not be stopped."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.registers: dict[int, dict[str, int]] = {}
        # Threads that were stopped while a signal was on its way to them, with its siginfo.
        self.arriving: dict[int, bytes] = {}
        self.problem: str | None = None
        self._seized: set[int] = set()

    def __enter__(self) -> Freeze:
        try:
            # Threads that run may start others: look again until nothing is new.
            while new := [tid for tid in thread_ids(self.pid) if tid not in self._seized]:
                for tid in new:
                    self._seize(tid)
                for tid in new:
                    self._await_stop(tid)
        except OSError as error:
            self.problem = f"ptrace is not allowed here ({error.strerror})"
        return self

    def __exit__(self, *_: object) -> None:
        for tid in self._seized:
            number = int.from_bytes(self.arriving.get(tid, b"")[:4], "little")  # must still arrive
            with contextlib.suppress(OSError):
                ptrace(PTRACE_DETACH, tid, 0, number)

    def _seize(self, tid: int) -> None:
        self._seized.add(tid)
        try:
            ptrace(PTRACE_SEIZE, tid)
            ptrace(PTRACE_INTERRUPT, tid)
        except ProcessLookupError:
            pass  # the thread ended meanwhile

    def _await_stop(self, tid: int) -> None:
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                waited, status = os.waitpid(tid, os.WNOHANG | WALL)
            except ChildProcessError:
                return
            if waited:
                with contextlib.suppress(OSError):
                    self.registers[tid] = registers_of(tid)
                    if status >> 16 == 0:  # not our stop, but the delivery of a signal
                        self.arriving[tid] = siginfo_of(tid)
                return
            time.sleep(0.0005)
