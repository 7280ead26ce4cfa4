"""Follows a program with ptrace, for where the agent cannot be loaded (no compiler, static binaries).

Sees the same facts from outside. Costs a stop for every thread and process that starts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from faultlens.inspection.death import Death, RawFault
from faultlens.inspection.freeze import (
    PTRACE_INTERRUPT,
    PTRACE_SEIZE,
    WALL,
    Freeze,
    ptrace,
    registers_of,
    siginfo_of,
    thread_ids,
)
from faultlens.inspection.subject import Subject
from faultlens.records.crash import Crash
from faultlens.supervise.backends.base import Expendable
from faultlens.supervise.backends.status import StatusBackend
from faultlens.supervise.examination import examine, look_here
from faultlens.supervise.options import Options
from faultlens.system.procfs import read_fields

PTRACE_CONT = 7
PTRACE_LISTEN = 0x4208
PTRACE_O_TRACEFORK = 0x2
PTRACE_O_TRACEVFORK = 0x4
PTRACE_O_TRACECLONE = 0x8
PTRACE_EVENT_STOP = 128
FOLLOW = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE

FATAL = {
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS,
}  # fmt: skip
STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


class PtraceBackend(StatusBackend):
    """The looks happen in this process: the tracer alone can see into those that it traces."""

    def __init__(self, options: Options, guard_table: Path | None) -> None:
        super().__init__(options, guard_table)
        self._tracer = Tracer(self._on_death, options.follow_children)
        self._dead: list[Crash] = []  # and not handed over yet

    def _attach(self, pid: int) -> None:
        self._tracer.attach(pid)

    def statuses(self) -> Iterator[int]:
        while True:
            try:
                tid, status = os.waitpid(-1, os.WNOHANG | WALL)
            except ChildProcessError:
                return
            if tid == 0:
                return
            is_program = tid == self._program.pid
            if not os.WIFSTOPPED(status):
                if is_program:
                    yield status
            elif self._tracer.handle_stop(tid, status) is not None and is_program:
                yield status

    def deaths(self, expendable: Expendable) -> Iterator[Crash]:  # noqa: ARG002
        while self._dead:
            yield self._dead.pop(0)

    def look(self, pid: int) -> Crash:
        return examine(self._subject(Death(pid)), self._look_held).crash()

    def _look_held(self, subject: Subject) -> Crash:
        with self._tracer.held(subject.death.pid) as freeze:
            return look_here(subject._replace(freeze=freeze))

    def _on_death(self, death: Death, freeze: Freeze) -> None:
        subject = self._subject(death)._replace(freeze=freeze)
        try:
            self._dead.append(look_here(subject))
        except Exception as error:
            from faultlens.inspection import inspect

            crash = inspect.outline(death, subject.method)
            self._dead.append(replace(crash, gaps=(f"looking at the process failed: {error}",)))


class Tracer:
    """All requests must come from the thread that attached: the supervisor's main thread."""

    def __init__(self, on_death: Callable[[Death, Freeze], None], follow_children: bool) -> None:
        self._on_death = on_death
        self._options = FOLLOW if follow_children else PTRACE_O_TRACECLONE
        # Faults that a handler of the program was given; it may raise the signal again.
        self._handled: dict[int, RawFault] = {}
        self._dying: set[int] = set()

    def attach(self, pid: int) -> None:
        ptrace(PTRACE_SEIZE, pid, 0, self._options)

    def handle_stop(self, tid: int, status: int) -> signal.Signals | None:
        """Answer one stop of a traced thread. Returns the signal of a job-control stop, if it is one."""
        stop_signal = os.WSTOPSIG(status)
        event = status >> 16
        if event == PTRACE_EVENT_STOP and stop_signal in STOPPING:
            _resume(PTRACE_LISTEN, tid)
            return signal.Signals(stop_signal)
        if event:
            _resume(PTRACE_CONT, tid)
            return None
        if stop_signal not in FATAL or not self._fatal(tid, stop_signal):
            _resume(PTRACE_CONT, tid, stop_signal)
        return None

    def _fatal(self, tid: int, number: int) -> bool:
        """True: it was the end of the process, which has happened."""
        status = read_fields(f"/proc/{tid}/status", ":")
        pid = int(status.get("Tgid", "0"))
        bit = 1 << (number - 1)
        if pid in self._dying or int(status.get("SigIgn", "0"), 16) & bit:
            return False
        try:
            fault = RawFault(tid, siginfo_of(tid), registers_of(tid))
        except OSError:
            return False  # killed meanwhile
        if int(status.get("SigCgt", "0"), 16) & bit:
            self._handled[tid] = fault._replace(chained=True)
            return False
        self._dying.add(pid)
        # Raised again by a handler: the fault that the handler was called for is the true one.
        fault = self._handled.pop(tid, fault) if _is_sent(fault.siginfo) else fault
        with self.held(pid, stopped=tid) as freeze:
            freeze.registers[tid] = fault.registers
            self._on_death(Death(pid, (fault,)), freeze)
            _resume(PTRACE_CONT, tid, number)  # before the others, which must not outlive it
        return True

    @contextlib.contextmanager
    def held(self, pid: int, stopped: int | None = None) -> Iterator[Freeze]:
        """All threads of a process standing still; the one that is `stopped` already stays so afterwards."""
        freeze = Freeze(pid)
        others = [tid for tid in thread_ids(pid) if tid != stopped]
        for tid in others:
            with contextlib.suppress(OSError):
                ptrace(PTRACE_INTERRUPT, tid)
        for tid in others:
            with contextlib.suppress(OSError):
                os.waitpid(tid, WALL)
                freeze.registers[tid] = registers_of(tid)
        try:
            yield freeze
        finally:
            for tid in freeze.registers.keys() - {stopped}:
                _resume(PTRACE_CONT, tid)


def _is_sent(siginfo: bytes) -> bool:
    """si_code of signals that were sent, not caused by the CPU, is not positive."""
    return int.from_bytes(siginfo[8:12], "little", signed=True) <= 0


def _resume(request: int, tid: int, number: int = 0) -> None:
    with contextlib.suppress(OSError):  # killed meanwhile
        ptrace(request, tid, 0, number)
