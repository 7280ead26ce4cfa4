"""Makes a Crash of a core file: what died, where and how, as far as the dead memory tells.

The reader is strict and bounded: whatever the bytes are, it ends soon with a Crash or a FaultlensError.
"""

from __future__ import annotations

import os
import signal
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.errors import FaultlensError
from faultlens.inspection import siginfo, signal_frame
from faultlens.inspection.abort_message import abort_message
from faultlens.inspection.check_message import check_message
from faultlens.inspection.corefile.compressed import plain_core
from faultlens.inspection.corefile.initial_stack import InitialStack, read_initial_stack
from faultlens.inspection.corefile.notes import (
    AT_ENTRY,
    AT_EXECFN,
    AT_SYSINFO_EHDR,
    CoreNotes,
    CoreThread,
    MappedFile,
    parse_notes,
)
from faultlens.inspection.fault import build_fault
from faultlens.inspection.maps import file_states, find, is_another, libraries
from faultlens.inspection.memory import CoreMemory, Segment, read_file, read_text
from faultlens.inspection.own_program import marked, own_program
from faultlens.inspection.python_state import python_of
from faultlens.inspection.python_values import variables_or_gap
from faultlens.inspection.stacks import arrange, at_fault, is_exiting, threads_of_core
from faultlens.inspection.tensorflow.kernels import Scan, kernels_or_gap
from faultlens.records.crash import Address, Crash, Fault, FileState, Mapping, Outcome, Output, Program, Thread
from faultlens.system import elf
from faultlens.system.isolated import IsolatedError, run_isolated

STACK_SECONDS = 60
KERNEL_SECONDS = 3.0  # the file may have to come from a slow disk
STACK_MEMORY = 4 << 30  # symbol tables of all libraries, and the core itself on top

NOT_IN_A_CORE = "a core file holds no output, limits, memory counters, threads' names or earlier C++ exceptions"


def read_core(
    path: Path,
    executable: Path | None = None,
    *,
    redact: bool = True,
    with_stacks: bool = True,
    contents: bool = True,
) -> Crash:
    """`executable` overrides the one the core names, for when that has moved. `redact` is done when the report is made.

    `contents`: the values of tensors may be kept, up to a limit."""
    with plain_core(path) as plain:
        file = os.open(plain, os.O_RDONLY | os.O_CLOEXEC)
        try:
            core = _open(file, path)
            with closing(core.memory):
                crash = _describe(core, plain, executable, redact, with_stacks, contents)
        finally:
            os.close(file)
    return replace(crash, time=path.stat().st_mtime)


class _Core(NamedTuple):
    notes: CoreNotes
    mappings: tuple[Mapping, ...]
    memory: CoreMemory
    missing_bytes: int  # cut off at the end


# ------------------------------------------------------------------------------------------ the file


def _open(file: int, path: Path) -> _Core:
    def read(offset: int, size: int) -> bytes:
        return read_file(file, offset, size)

    size = os.fstat(file).st_size
    headers = _headers(read, size, path)
    notes = parse_notes(
        note
        for header in headers
        if header.type == elf.PT_NOTE
        for note in elf.notes(read(header.offset, min(header.filesz, elf.MAX_NOTE_BYTES)))
    )
    if not notes.threads:
        raise FaultlensError(
            f"{path} does not say which threads there were; it is cut off or damaged.",
            "A full disk or `ulimit -c` may have cut it; try again with `ulimit -c unlimited`.",
        )
    loads = sorted((each for each in headers if each.type == elf.PT_LOAD), key=lambda load: load.vaddr)
    segments = _segments(loads, notes.files, size)
    mappings = _mappings(segments, [load.flags for load in loads], notes)
    end = max((load.offset + load.filesz for load in loads), default=0)
    return _Core(notes, mappings, CoreMemory(file, segments), max(end - size, 0))


def _headers(read: elf.Read, size: int, path: Path) -> list[elf.ProgramHeader]:
    if not size:
        raise FaultlensError(
            f"{path} is empty.", "The disk was full, or `ulimit -c` too small, when the core was written."
        )
    if read(0, 4) != b"\x7fELF":
        raise FaultlensError(f"{path} is not a core file.", "Name the file the kernel wrote: core, core.PID.")
    try:
        header = elf.read_header(read)
        if header.type != elf.ET_CORE:
            raise FaultlensError(
                f"{path} is a program or library, not a core file.",
                "The core comes first: explain CORE [EXE].",
            )
        return elf.program_headers(read, header)
    except elf.ElfError as error:
        raise FaultlensError(
            f"{path} cannot be read as a core: {error}.",
            "faultlens reads whole cores of x86-64 Linux programs.",
        ) from error


def _segments(loads: Sequence[elf.ProgramHeader], files: Sequence[MappedFile], size: int) -> list[Segment]:
    starts = [file.start for file in files]
    segments = []
    for load in loads:
        end = load.vaddr + max(load.memsz, load.filesz)
        in_core = max(0, min(load.filesz, size - load.offset))
        index = bisect_right(starts, load.vaddr) - 1
        if index >= 0 and load.vaddr < files[index].end:
            file = files[index]
            offset = file.offset + load.vaddr - file.start
            segments.append(Segment(load.vaddr, end, load.offset, in_core, file.path, offset))
        else:
            segments.append(Segment(load.vaddr, end, load.offset, in_core))
    return segments


def _mappings(segments: Sequence[Segment], flags: Sequence[int], notes: CoreNotes) -> tuple[Mapping, ...]:
    vdso, top = notes.auxiliary(AT_SYSINFO_EHDR), notes.auxiliary(AT_EXECFN)
    named = {"[vdso]": vdso, "[stack]": top}
    mappings = []
    for segment, flag in zip(segments, flags, strict=True):
        special = (name for name, place in named.items() if place and segment.start <= place < segment.end)
        if segment.end < 1 << 64 and segment.path_offset < 1 << 63:
            mappings.append(
                Mapping(
                    start=Address(segment.start),
                    end=Address(segment.end),
                    permissions=_permissions(flag),
                    offset=segment.path_offset,
                    path=segment.path or next(special, None),
                )
            )
    return tuple(mappings)


def _permissions(flags: int) -> str:
    """The core does not say whether a mapping was shared; it is shown as private."""
    bits = ((elf.PF_R, "r"), (elf.PF_W, "w"), (elf.PF_X, "x"))
    return "".join(letter if flags & bit else "-" for bit, letter in bits) + "p"


# ----------------------------------------------------------------------------------------- the crash


def _describe(
    core: _Core, path: Path, executable: Path | None, redact: bool, with_stacks: bool, contents: bool
) -> Crash:
    notes, mappings, memory = core.notes, core.mappings, core.memory
    gaps = [NOT_IN_A_CORE]
    if core.missing_bytes:
        gaps.append(f"the core is cut off: {core.missing_bytes} bytes of memory are missing at its end")
    files = file_states(mappings, memory=memory)
    gaps += _changed_files(files, memory)
    main_file = _main_file(notes, mappings)
    if executable and main_file and is_another(executable, main_file, mappings, memory):
        gaps.append(f"{executable} is not the program that left this core, by its build id: it was not used")
        executable = None
    executable = _usable(executable, main_file, gaps)
    crashed = notes.threads[0]
    fault = _fault(core, crashed)
    threads = tuple(_bare_thread(thread) for thread in notes.threads)
    if with_stacks:
        threads = _threads(core, path, executable, fault, gaps)
        is_own = own_program(threads, main_file, mappings)
        threads = tuple(replace(thread, frames=marked(thread.frames, is_own)) for thread in threads)
    pid = notes.pid if notes.pid is not None else crashed.id
    threads = arrange(threads, crashed.id if fault else None, pid)
    if contents:
        threads = variables_or_gap(threads, memory, mappings, gaps)
    scan = _kernels(core, threads, fault, contents)
    return Crash(
        outcome=_outcome(notes),
        method="core",
        pid=pid,
        parent_pid=notes.parent_pid,
        exiting=is_exiting(threads, pid) if with_stacks else None,
        program=_program(core, main_file, redact),
        fault=fault,
        threads=threads,
        kernels=scan.kernels,
        output=_last_words(core, crashed),
        abort_message=abort_message(memory, mappings),
        mappings=mappings,
        libraries=libraries(mappings, memory),
        files=files,
        gaps=(*gaps, *scan.gaps),
    )


def _changed_files(files: Sequence[FileState], memory: CoreMemory) -> list[str]:
    """A library that was replaced since holds other code at the same addresses."""
    replaced = [file.path for file in files if file.state == "replaced"]
    for path in replaced:
        memory.distrust(path)
    return [f"{path} is no longer the file the program ran" for path in replaced]


def _main_file(notes: CoreNotes, mappings: Sequence[Mapping]) -> str | None:
    """The file of the program itself: the one its entry point lies in."""
    entry = find(mappings, notes.auxiliary(AT_ENTRY) or 0)
    return entry.path if entry else None


def _usable(given: Path | None, named: str | None, gaps: list[str]) -> Path | None:
    for candidate in (given, Path(named) if named else None):
        if candidate is not None:
            if candidate.is_file() and _is_elf(candidate):
                return candidate
            gaps.append(f"the executable {candidate} is not there or not a program: symbols may be missing")
    return None


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _outcome(notes: CoreNotes) -> Outcome:
    number = siginfo.parse(notes.siginfo).number or notes.threads[0].signal
    if not number:  # taken from a living process, by gcore
        return Outcome(kind="hang")
    return Outcome(kind="signal", signal=siginfo.signal_name(number), core_dumped=True)


def _fault(core: _Core, crashed: CoreThread) -> Fault | None:
    notes, mappings, memory = core.notes, core.mappings, core.memory
    info = siginfo.parse(notes.siginfo)
    if not info.number:
        if not crashed.signal:
            return None
        return Fault(
            signal=siginfo.signal_name(crashed.signal),
            code="unknown",
            thread=crashed.id,
            registers={"rip": Address(crashed.registers["rip"]), "rsp": Address(crashed.registers["rsp"])},
        )
    if not info.is_fault and (info.sender_pid == notes.pid or info.code == siginfo.SI_TKILL):
        recovered = signal_frame.recover(memory, crashed.registers, mappings, notes.siginfo)
        if recovered:
            return build_fault(*recovered, crashed.id, memory, mappings, "signal-frame")
    return build_fault(notes.siginfo, crashed.registers, crashed.id, memory, mappings)


def _last_words(core: _Core, crashed: CoreThread) -> Output:
    """Nothing that was printed is in a core; but what a failed check logged still lies in memory."""
    number = siginfo.parse(core.notes.siginfo).number or crashed.signal
    if number != signal.SIGABRT:
        return Output()
    return Output(stderr=check_message(core.memory, crashed.registers["rsp"], core.mappings))


# ------------------------------------------------------------------------------------------- threads


def _threads(
    core: _Core, path: Path, executable: Path | None, fault: Fault | None, gaps: list[str]
) -> tuple[Thread, ...]:
    faults = {fault.thread: int(fault.registers["rip"])} if fault else {}
    budget = STACK_MEMORY + 2 * path.stat().st_size
    try:
        found = run_isolated(
            STACK_SECONDS, budget, threads_of_core, path, executable, core.mappings, core.memory, faults
        )
    except (IsolatedError, OSError) as error:
        gaps.append(f"the stacks could not be unwound: {error}")
        found = []
    by_id = {thread.id: thread for thread in found}
    threads = []
    for each in core.notes.threads:
        bare = _bare_thread(each)
        thread = replace(
            by_id.get(each.id, bare), stack_pointer=bare.stack_pointer, program_counter=bare.program_counter
        )
        if fault and each.id == fault.thread:
            thread = at_fault(thread, fault.registers, core.memory, core.mappings)
        threads.append(thread)
    return tuple(threads)


def _kernels(core: _Core, threads: Sequence[Thread], fault: Fault | None, contents: bool) -> Scan:
    registers: dict[int, dict[str, int]] = {thread.id: thread.registers for thread in core.notes.threads}
    if fault:
        registers[fault.thread] = {**fault.registers}
    return kernels_or_gap(
        core.memory, core.mappings, threads, registers, fault, contents=contents, seconds=KERNEL_SECONDS
    )


def _bare_thread(thread: CoreThread) -> Thread:
    return Thread(
        id=thread.id,
        stack_pointer=Address(thread.registers["rsp"]),
        program_counter=Address(thread.registers["rip"]),
    )


# ------------------------------------------------------------------------------------------- program


def _program(core: _Core, main_file: str | None, redact: bool) -> Program:
    start = _initial_stack(core)
    command, environment = start.command, start.environment
    program = Program(
        command=command,
        directory=environment.get("PWD"),
        executable=main_file,
        environment=environment,
        redacted=redact,
    )
    prefix = _virtual_environment(core, start)
    return replace(program, python=python_of(core.memory, core.mappings, program, prefix))


def _initial_stack(core: _Core) -> InitialStack:
    top = core.notes.auxiliary(AT_EXECFN)
    stack = find(core.mappings, top) if top else None
    found = read_initial_stack(core.memory, stack, core.notes.auxv) if stack else None
    if found and found.command:
        return found
    return InitialStack(tuple(core.notes.command.split()), found.environment if found else {})


def _virtual_environment(core: _Core, start: InitialStack) -> str | None:
    """The folder of pyvenv.cfg, when the program was started as its bin/python. An environment may be active in a
    shell from which another Python was started."""
    name = read_text(core.memory, core.notes.auxiliary(AT_EXECFN) or 0)
    folder = Path(start.environment.get("PWD", "/"))
    for started in filter(None, (name, *start.command[:1])):  # of a script with "#!" the first is the script
        root = (folder / started).parent.parent
        if (root / "pyvenv.cfg").is_file() or str(root) == start.environment.get("VIRTUAL_ENV"):
            return str(root)
    return None
