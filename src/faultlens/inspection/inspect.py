"""Looks at a process that is held at its fatal signal (or hangs) and makes a Crash of it.

Runs in a forked child of the supervisor, which may be killed when it takes too long: what a look costs in
memory and time, and whatever goes wrong in it, stays away from the supervisor."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from faultlens import guard_alloc
from faultlens.agent import LIBRARY
from faultlens.guard_alloc.blocks import hunt_in
from faultlens.inspection import process, siginfo, stacks, without_ptrace
from faultlens.inspection.abort_message import abort_message
from faultlens.inspection.death import Death, RawFault, RawThrow
from faultlens.inspection.fault import build_fault
from faultlens.inspection.freeze import Freeze, thread_ids
from faultlens.inspection.locks import with_locks
from faultlens.inspection.maps import deleted_paths, file_states, libraries, parse_maps
from faultlens.inspection.memory import Memory, ProcessMemory
from faultlens.inspection.numbering import thread_numbers
from faultlens.inspection.own_program import marked, own_program
from faultlens.inspection.python_state import python_of
from faultlens.inspection.python_values import variables_or_gap
from faultlens.inspection.subject import Subject
from faultlens.inspection.symbols import demangle, native_frames
from faultlens.inspection.system_calls import with_calls
from faultlens.inspection.tensorflow.kernels import Scan, kernels_or_gap
from faultlens.records.crash import (
    Address,
    CaptureMethod,
    CppException,
    Crash,
    Fault,
    Frame,
    Hunt,
    Mapping,
    Outcome,
    Thread,
)
from faultlens.system.cgroup import cgroup_of
from faultlens.system.machine import machine_state
from faultlens.system.procfs import read_text

STACK_REACH = 64 * 1024  # a function may skip this much with one large local variable


def inspect(subject: Subject) -> Crash:
    if subject.freeze is not None:
        return _look(subject, subject.freeze)
    with Freeze(subject.death.pid, subject.death.parked) as freeze:
        return _look(subject, freeze)


def outline(death: Death, method: CaptureMethod) -> Crash:
    """What can be said without looking at the process: for when it has gone, or the look failed."""
    faults = _faults(death, _NoMemory(), ())
    return Crash(
        outcome=_outcome(death),
        method=method,
        pid=death.pid,
        time=time.time(),
        fault=faults[0] if faults else None,
        also_faulted=tuple(faults[1:]),
        exceptions=_exceptions(death, ()),
    )


class _NoMemory:
    def read(self, address: int, size: int) -> bytes:  # noqa: ARG002
        return b""


def _look(subject: Subject, freeze: Freeze) -> Crash:
    pid, table = subject.death.pid, subject.guard_table
    death = subject.death._replace(faults=(*subject.death.faults, *_faults_arriving(subject.death, freeze)))
    maps_text = read_text(f"/proc/{pid}/maps") or ""
    mappings = parse_maps(maps_text)
    memory = ProcessMemory(pid)
    gaps = [] if mappings else ["its memory map could not be read"]
    faults = _faults(death, memory, mappings)
    found = _stacks(death, freeze, mappings, gaps) if subject.with_stacks else []
    threads = _threads(death, freeze, memory, mappings, found)
    program = process.program(pid, subject.redact)
    is_own = own_program(threads, program.executable, mappings)
    threads = tuple(replace(thread, frames=marked(thread.frames, is_own)) for thread in threads)
    if subject.contents:
        threads = variables_or_gap(threads, memory, mappings, gaps)
    thrown = _exceptions(death, mappings)
    exceptions = tuple(replace(each, frames=marked(each.frames, is_own)) for each in thrown)
    registers = freeze.registers | {raw.thread: raw.registers for raw in death.faults}
    fault = faults[0] if faults else None
    try:
        scan = kernels_or_gap(memory, mappings, threads, registers, fault, exceptions, subject.contents)
    except Exception as error:  # what it stumbled over must not cost all that is known already
        scan = Scan(gaps=(f"ops in flight: {type(error).__name__}: {error}",))
    python = python_of(memory, mappings, program, process.environment_prefix(pid))
    cgroup = cgroup_of(pid)
    return Crash(
        outcome=_outcome(death),
        method=subject.method,
        pid=pid,
        parent_pid=process.parent_pid(pid),
        time=time.time(),
        exiting=stacks.is_exiting(threads, pid),
        program=replace(program, python=python),
        fault=fault,
        also_faulted=tuple(faults[1:]),
        threads=threads,
        kernels=scan.kernels,
        exceptions=exceptions,
        hunt=_hunt(table, pid, fault, memory, mappings, gaps) if table else None,
        abort_message=abort_message(memory, mappings),
        mappings=mappings,
        libraries=libraries(mappings, memory),
        files=file_states(mappings, deleted_paths(maps_text), memory, process.own_root(pid)),
        memory=process.memory_use(pid),
        limits=process.resource_limits(pid),
        cgroup=cgroup.state() if cgroup else None,
        machine=machine_state(),
        gaps=(*gaps, *scan.gaps),
    )


def _hunt(
    table: Path, pid: int, fault: Fault | None, memory: Memory, mappings: tuple[Mapping, ...], gaps: list[str]
) -> Hunt | None:
    try:
        return hunt_in(table, pid, fault, memory, mappings)
    except Exception as error:  # a table that was damaged must not cost the rest
        gaps.append(f"the fence: {type(error).__name__}: {error}")
        return None


def _outcome(death: Death) -> Outcome:
    """Preliminary: the parent that waits for the process knows how it really ended."""
    if not death.faults:
        return Outcome(kind="timeout")
    return Outcome(kind="signal", signal=siginfo.parse(death.faults[0].siginfo).name)


def _faults(death: Death, memory: Memory, mappings: tuple[Mapping, ...]) -> list[Fault]:
    return [build_fault(raw.siginfo, raw.registers, raw.thread, memory, mappings, raw.seen) for raw in death.faults]


def _faults_arriving(death: Death, freeze: Freeze) -> Iterator[RawFault]:
    """Other threads that crash at this very moment."""
    known = {raw.thread for raw in death.faults}
    for tid, info in freeze.arriving.items():
        if tid not in known and siginfo.parse(info).is_fault:
            yield RawFault(tid, info, freeze.registers[tid])


def _stacks(death: Death, freeze: Freeze, mappings: tuple[Mapping, ...], gaps: list[str]) -> list[Thread]:
    counters = {raw.thread: raw.registers["rip"] for raw in death.faults}
    if freeze.problem:
        gaps.append(f"native stacks: {freeze.problem}")
        with contextlib.suppress(OSError):
            without_ptrace.answer_enosys()
    try:
        overflowed = any(_at_stack_pointer(raw) for raw in death.faults)
        return stacks.threads_of_process(death.pid, mappings, freeze.problem is None, counters, overflowed)
    except stacks.NoStacksError as error:
        gaps.append(f"Python stacks: {error}")
        return []


def _at_stack_pointer(raw: RawFault) -> bool:
    address = siginfo.parse(raw.siginfo).address
    return address is not None and abs(address - raw.registers["rsp"]) < STACK_REACH


def _threads(
    death: Death, freeze: Freeze, memory: ProcessMemory, mappings: tuple[Mapping, ...], found: list[Thread]
) -> tuple[Thread, ...]:
    by_id = {thread.id: thread for thread in found}
    for tid in thread_ids(death.pid):
        by_id.setdefault(tid, Thread(id=tid))
    threads = []
    for tid, thread in by_id.items():
        registers = freeze.registers.get(tid, {})
        fault = next((raw for raw in death.faults if raw.thread == tid), None)
        if fault:
            registers = fault.registers
            thread = stacks.at_fault(thread, registers, memory, mappings)
        threads.append(
            replace(
                thread,
                frames=_without_agent(thread.frames),
                name=process.thread_name(death.pid, tid),
                stack_pointer=_address(registers, "rsp"),
                program_counter=_address(registers, "rip"),
            )
        )
    if not death.faults:
        threads = with_locks(threads, freeze.registers, memory, thread_numbers(death.pid))
        threads = with_calls(threads, death.pid, freeze.registers)
    return stacks.arrange(threads, death.faults[0].thread if death.faults else None, death.pid)


def _exceptions(death: Death, mappings: tuple[Mapping, ...]) -> tuple[CppException, ...]:
    now = time.time()
    return tuple(
        CppException(
            type=demangle(f"_ZTS{raw.type}").removeprefix("typeinfo name for "),
            message=raw.message or None,
            thread=raw.thread,
            seconds_before=round(max(now - raw.time, 0.0), 3),
            frames=_throwing_frames(raw, mappings),
        )
        for raw in death.throws
    )


def _throwing_frames(raw: RawThrow, mappings: tuple[Mapping, ...]) -> tuple[Frame, ...]:
    # A return address stands behind its call, which may be the last instruction of the function.
    frames = native_frames([address - 1 for address in raw.frames], mappings)
    return _without_agent(frames)


def _without_agent(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The functions that the agent wraps would stand on the stack twice; of the guarding
    allocator the wrapped ones are told."""
    ours = {str(LIBRARY), str(guard_alloc.LIBRARY)}
    return tuple(frame for frame in frames if frame.library not in ours or frame.function in guard_alloc.WRAPPED)


def _address(registers: dict[str, int], name: str) -> Address | None:
    return Address(registers[name]) if name in registers else None
