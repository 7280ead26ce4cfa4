"""The helper process of faultlens.install(): watches a program that it did not start, and hears of its crashes.

It is not the program's parent: how a process ended is read from /proc or its pidfd."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.agent.area import SharedArea
from faultlens.inspection import siginfo
from faultlens.inspection.death import Death, RawFault
from faultlens.inspection.endings import outcome_of
from faultlens.inspection.memory import Memory
from faultlens.inspection.numbering import death_of, has_mapped
from faultlens.inspection.output_tail import OutputTail
from faultlens.inspection.subject import Subject
from faultlens.inspection.wait_status import wait_status
from faultlens.records.crash import Crash, Mapping, Outcome, Output
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import cgroup_of

STDERR = 2
POLL_S = 0.05  # where no thread may listen
HANDLER_TAKES_S = 10.0  # at most, from the fault to the end of the process

HANDLED = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}
NOT_CALLED = (
    "the handler of faultlens was not called: another handler took its place, or there was no stack left for it, on a "
    "thread that did not call install()"
)
NOT_READ = "what it printed is known only where that goes to a file; `faultlens run` knows it everywhere"


class _Handled(NamedTuple):
    """A fault that a handler of the program was given. It may recover; else this tells of it."""

    fault: RawFault
    tell: Callable[[], None]


class Attendant:
    """`examine` gets a crash while its process is still held, if it was seen from inside, else after its end. It
    returns what tells of it."""

    def __init__(self, pid: int, examine: Callable[[Crash], Callable[[], None]]) -> None:
        self.pid = pid
        self.area = SharedArea()
        self._examine = examine
        self._started = time.monotonic()
        self._cgroup = cgroup_of(pid)
        self._cgroup_before = self._cgroup.state() if self._cgroup else None
        self._timeline = Timeline(pid, self._cgroup, redact=True)
        self._output = OutputTail(None)
        self._handled: dict[int, _Handled] = {}  # by process id
        self._told: set[int] = set()
        self._pidfds: dict[int, int] = {}  # of processes whose end is waited for
        self._poll = select.poll()
        self._wait_for_end(pid)
        self._timeline.take(0.0)  # the program waits for us

    def attend(self) -> None:
        """Until the program has ended, and all processes that it forked, which have its handlers."""
        woken, wake = os.pipe()
        is_listening = self.area.listen(partial(_write_byte, wake))
        self._poll.register(woken, select.POLLIN)
        next_sample = 0.0
        while self._pidfds:
            elapsed = time.monotonic() - self._started
            if elapsed >= next_sample:
                self._timeline.take(elapsed)
                next_sample = elapsed + self._timeline.interval(elapsed)
            wait = next_sample - elapsed if is_listening else POLL_S
            ready = [descriptor for descriptor, _ in self._poll.poll(wait * 1000)]
            if woken in ready:
                os.read(woken, 4096)
            self._serve()
            for pid in [pid for pid, descriptor in self._pidfds.items() if descriptor in ready]:
                self._on_end(pid)

    def _wait_for_end(self, pid: int) -> None:
        if pid not in self._pidfds:
            self._pidfds[pid] = os.pidfd_open(pid)
            self._poll.register(self._pidfds[pid], select.POLLIN)

    # ------------------------------------------------------------------------------------------ crashes

    def _serve(self) -> None:
        for slot in list(self.area.waiting()):
            death = self.area.accept(slot)
            try:
                self._on_crash(death)
            finally:
                self.area.release(slot)

    def _on_crash(self, death: Death) -> None:
        here = death_of(death, self.area.inode)
        crash = _look(here) if here else _outline(death, "it is in a namespace that cannot be looked into")
        tell = self._examine(self._with_surroundings(crash))
        if here and death.faults[0].chained:
            with contextlib.suppress(ProcessLookupError):
                self._wait_for_end(here.pid)
                self._handled[here.pid] = _Handled(death.faults[0], tell)
        else:
            self._told.add(crash.pid or 0)
            tell()

    # --------------------------------------------------------------------------------------------- ends

    def _on_end(self, pid: int) -> None:
        descriptor = self._pidfds.pop(pid)
        self._poll.unregister(descriptor)
        status = wait_status(pid, descriptor)
        os.close(descriptor)
        handled = self._handled.pop(pid, None)
        if pid not in self._told:
            self._after_end(pid, status, handled)
        if pid == self.pid:
            _let_go_of_stderr()
        if not self._pidfds:
            for heir in _that_have_mapped(self.area.inode):
                with contextlib.suppress(ProcessLookupError):
                    self._wait_for_end(heir)

    def _after_end(self, pid: int, status: int | None, handled: _Handled | None) -> None:
        """Exit statuses and exceptions speak for themselves."""
        outcome = outcome_of(status, None) if status is not None else self._guessed_outcome()
        if outcome is None or outcome.kind != "signal":
            return
        death = self.area.handled_fault(pid, time.time() - HANDLER_TAKES_S)
        if death is not None and outcome.signal == _signal_of(death):
            if handled is not None and handled.fault == death.faults[0]:
                handled.tell()
                return
            crash = _outline(death, "a handler had recovered from this signal before, so it was not looked at")
        elif pid == self.pid:
            gaps = (NOT_CALLED,) if outcome.signal in HANDLED else ()
            crash = Crash(outcome=outcome, method="status", pid=pid, time=time.time(), gaps=gaps)
        else:
            return
        if pid == self.pid and self._timeline.program:
            crash = replace(crash, program=self._timeline.program)
        self._examine(self._with_surroundings(crash, has_ended=True))()

    def _guessed_outcome(self) -> Outcome | None:
        """Its parent was quicker to take note of its end, and the kernel is too old to tell it twice."""
        before, now = self._cgroup_before, self._cgroup.state() if self._cgroup else None
        if before and now and (now.oom_kills or 0) > (before.oom_kills or 0):
            return Outcome(kind="signal", signal="SIGKILL")
        return None

    # -------------------------------------------------------------------------------------- the account

    def _with_surroundings(self, crash: Crash, has_ended: bool = False) -> Crash:
        from faultlens.supervise.live import with_remembered
        from faultlens.supervise.saves import with_saves
        from faultlens.supervise.sources import with_sources
        from faultlens.system.kernel_log import kernel_log_lines

        seconds = round(time.monotonic() - self._started, 3)
        crash = replace(crash, seconds=seconds)
        if crash.pid == self.pid:
            output = self._output.read(self.pid)
            crash = replace(
                crash,
                output=output if output.stderr is not None else crash.output,
                gaps=crash.gaps if output.stderr is not None else (*crash.gaps, NOT_READ),
                timeline=tuple(self._timeline.samples),
                memory=crash.memory or self._timeline.memory,
                limits=crash.limits or self._timeline.limits,
                cgroup_before=self._cgroup_before,
                cgroup=self._cgroup.state() if self._cgroup else None,
            )
        if has_ended:  # the kernel logs what has happened
            log = kernel_log_lines({crash.pid or 0, *(thread.id for thread in crash.threads)}, time.time() - seconds)
            crash = replace(crash, kernel_log=log or ())
        crash = with_remembered(crash)
        return with_sources(with_saves(crash) if crash.progress else crash)


def _write_byte(descriptor: int) -> None:
    os.write(descriptor, b"\0")


def _signal_of(death: Death) -> str:
    return siginfo.parse(death.faults[0].siginfo).name


def _outline(death: Death, gap: str) -> Crash:
    from faultlens.inspection import inspect

    return replace(inspect.outline(death, "agent"), gaps=(gap,))


def _look(death: Death) -> Crash:
    from faultlens.supervise.examination import LOOK_MEMORY, LOOK_SECONDS, examine
    from faultlens.system.isolated import run_isolated

    examined = examine(Subject(death), lambda subject: run_isolated(LOOK_SECONDS, LOOK_MEMORY, _inspect, subject))
    return examined.crash() if examined.seen is not None else _outline(death, "; ".join(examined.problems))


def _inspect(subject: Subject) -> Crash:
    from faultlens.inspection import inspect
    from faultlens.inspection.check_message import check_message
    from faultlens.inspection.maps import parse_maps
    from faultlens.inspection.memory import ProcessMemory
    from faultlens.system.procfs import read_text

    pid = subject.death.pid
    memory = ProcessMemory(pid)
    mappings = parse_maps(read_text(f"/proc/{pid}/maps") or "")
    death = _at_first_fault(subject.death, memory, mappings)
    said = check_message(memory, death.faults[0].registers["rsp"], mappings) if _signal_of(death) == "SIGABRT" else None
    crash = inspect.inspect(subject._replace(death=death))
    return replace(crash, output=Output(stderr=said))


def _at_first_fault(death: Death, memory: Memory, mappings: Sequence[Mapping]) -> Death:
    """A handler that was set after ours has seen the fault before us, and raised the signal again."""
    from faultlens.inspection import signal_frame

    last = death.faults[0]
    if siginfo.parse(last.siginfo).is_fault:
        return death
    outside = {**last.registers, "rip": 0}  # the frame of our own handler has them
    found = signal_frame.recover(memory, outside, mappings, last.siginfo)
    if found is None:
        return death
    return death._replace(faults=(RawFault(last.thread, *found, chained=True), *death.faults[1:]))


def _that_have_mapped(inode: int) -> list[int]:
    processes = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in processes if pid != os.getpid() and has_mapped(pid, inode)]


def _let_go_of_stderr() -> None:
    """It is the program's: whoever reads it waits until nobody has it any more."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDERR)
    os.close(nothing)
