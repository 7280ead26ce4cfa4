"""Stops all threads of a process for a moment (ptrace) and reads their registers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Mapping
from pathlib import Path

from faultlens.inspection.death import NOBODY_PARKED, ParkedThreads
from faultlens.inspection.memory import ProcessMemory
from faultlens.inspection.numbering import thread_numbers
from faultlens.inspection.parked import interrupted_registers

PTRACE_GETREGS = 12
PTRACE_SETREGS = 13
PTRACE_DETACH = 17
PTRACE_GETSIGINFO = 0x4202
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000  # __WALL: wait for threads too
STOP_TIMEOUT_S = 0.5
SIGINFO_SIZE = 128
NO_SYSTEM_CALL = 2**64 - 1  # orig_rax: nothing is to be started again

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


def set_registers(thread: int, registers: Mapping[str, int]) -> None:
    buffer = (ctypes.c_uint64 * len(USER_REGS))(*(registers[name] for name in USER_REGS))
    ptrace(PTRACE_SETREGS, thread, 0, ctypes.addressof(buffer))


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
    """Holds a process still while it is looked at. `problem` says why it could not be stopped.

    Threads that the agent has `parked` are put back to where they were interrupted for so long."""

    def __init__(self, pid: int, parked: ParkedThreads = NOBODY_PARKED) -> None:
        self.pid = pid
        self._parked = parked
        self._standing: dict[int, dict[str, int]] = {}  # registers of threads that were put back
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
                deadline = time.monotonic() + STOP_TIMEOUT_S
                for tid in new:
                    self._await_stop(tid, deadline)
            if self._parked.number:
                self._put_back()
        except OSError as error:
            self.problem = f"ptrace is not allowed here ({error.strerror})"
        return self

    def _put_back(self) -> None:
        with ProcessMemory(self.pid) as memory:
            numbers = thread_numbers(self.pid)  # the agent noted what they call themselves
            parked = interrupted_registers(memory, self._parked)
            interrupted = {numbers.get(tid, tid): registers for tid, registers in parked.items()}
        for tid in interrupted.keys() & self.registers.keys():
            standing = self.registers[tid]
            before = {**standing, **{name: interrupted[tid][name] for name in USER_REGS if name in interrupted[tid]}}
            set_registers(tid, {**before, "orig_rax": NO_SYSTEM_CALL})
            self._standing[tid], self.registers[tid] = standing, before

    def __exit__(self, *_: object) -> None:
        for tid, registers in self._standing.items():
            with contextlib.suppress(OSError):
                set_registers(tid, registers)
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

    def _await_stop(self, tid: int, deadline: float) -> None:
        while True:
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
            if time.monotonic() > deadline:
                return
            time.sleep(0.0005)
