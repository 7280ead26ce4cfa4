"""Who was doing what: the stacks of all threads, Python and native frames in one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from pystack.engine import NativeReportingMode, get_process_threads, get_process_threads_for_core
from pystack.errors import PystackError
from pystack.types import NativeFrame, PyFrame, PyThread

from faultlens.inspection import symbols, unwind
from faultlens.inspection.corefile.copy import readable_copy
from faultlens.inspection.frames import gap
from faultlens.inspection.maps import locate
from faultlens.inspection.memory import Memory, ProcessMemory
from faultlens.inspection.merging import PythonFrame, is_interpreter, merge
from faultlens.inspection.numbering import thread_numbers
from faultlens.inspection.python_threads import is_illegible, python_threads, with_legible_names
from faultlens.inspection.return_addresses import name_callers, within
from faultlens.inspection.stack_scan import caller_of_jump, scan_stack
from faultlens.records import crash
from faultlens.records.crash import Address, Frame, Thread

MAX_INNER_FRAMES = 400
MAX_OUTER_FRAMES = 100

# Calls that hand work to other threads and wait for it.
_LAUNCHERS = (
    *("TFE_Py_FastPathExecute", "TFE_Py_Execute", "TFE_Execute", "TFE_Py_ExecuteCancelable"),
    *("TF_SessionRun", "TF_SessionPRun", "tensorflow::DirectSession::Run", "tflite::"),
)
_EXITING = frozenset(
    {
        *("Py_FinalizeEx", "Py_Finalize", "Py_Exit", "Py_EndInterpreter", "_Py_Finalize", "finalize_modules"),
        *("exit", "__run_exit_handlers", "_dl_fini", "__cxa_finalize", "call_fini", "__libc_atexit"),
        *("__call_tls_dtors", "quick_exit", "wait_for_thread_shutdown", "_PyAtExit_Call"),
    }
)
_COLLECTING = frozenset(
    {
        *("gc_collect_main", "gc_collect_generations", "gc_collect_with_callback", "gc_collect_region"),
        *("collect", "collect.constprop.0", "PyGC_Collect", "_PyGC_Collect", "_PyGC_CollectNoFail"),
    }
)

Faults = Mapping[int, int]  # thread id -> program counter at which it faulted


class NoStacksError(Exception):
    """No stack could be read; the text says why."""


def threads_of_process(
    pid: int,
    mappings: Sequence[crash.Mapping],
    native: bool = True,
    faults: Faults | None = None,
    overflowed: bool = False,
) -> list[Thread]:
    """Threads of a process that the calling thread holds in a ptrace stop (without it only `native=False`).

    For threads in `faults` the frames of signal handlers that ran since are left out. A stack that `overflowed`
    may hold a hundred thousand frames: of its native ones only the innermost are walked.
    """

    numbers = thread_numbers(pid)  # Python notes what its threads call themselves

    def read(mode: NativeReportingMode) -> list[PyThread]:
        with ProcessMemory(pid) as memory:
            threads = _legible(partial(get_process_threads, pid, stop_process=False), mode, memory, mappings)
        for thread in threads:
            if thread.python_version is not None and thread.tid in numbers:
                thread.tid, thread.name = numbers[thread.tid], None
        return threads

    def unwind_all() -> unwind.Stacks:
        return unwind.unwind_process(pid, mappings)

    if native and overflowed:
        with _without_network():
            return _threads_apart(read, unwind_all, faults or {}, "the stack overflowed")
    return _threads(read, unwind_all, mappings, native, faults or {})


def threads_of_core(
    core: Path,
    executable: Path | None,
    mappings: Sequence[crash.Mapping],
    memory: Memory,
    faults: Faults | None = None,
) -> list[Thread]:
    """Threads of a core; without the executable there are native frames only."""
    try:
        found = _threads_of_core(core, executable, mappings, memory, faults or {})
    except NoStacksError:
        with readable_copy(core, mappings) as copy:
            if copy is None:
                raise
            found = _threads_of_core(copy, executable, mappings, memory, faults or {})
    # pystack looks names up by the thread id in /proc, where by now another thread may have it.
    return [replace(thread, name=None) for thread in found]


def at_fault(thread: Thread, registers: Mapping[str, int], memory: Memory, mappings: Sequence[crash.Mapping]) -> Thread:
    """The stack as it was at the fault; where it cannot be unwound from there, what the memory suggests."""
    pc, stack_pointer = registers["rip"], registers["rsp"]
    index = next((i for i, frame in enumerate(thread.frames) if frame.address == pc), len(thread.frames))
    frames = thread.frames[index:]
    if any(frame.library and frame.address != pc for frame in frames):
        # Nothing says how to unwind from a wild jump; the call has just pushed its return address.
        caller = caller_of_jump(memory, pc, stack_pointer, mappings)
        if caller and all(frame.address != caller.address for frame in frames[1:2]):
            frames = (frames[0], caller, *frames[1:])
        return replace(thread, frames=frames)
    here, *callers = scan_stack(memory, pc, stack_pointer, mappings)
    known = tuple(frame for frame in frames if frame.address == pc)
    python = tuple(frame for frame in thread.frames if frame.kind == "python")
    return replace(thread, frames=(*(known or (here,)), *callers, *python))


def arrange(threads: Sequence[Thread], crashed: int | None, pid: int | None = None) -> tuple[Thread, ...]:
    """The crashed thread first, then the one that launched the work, then the others."""
    launcher = _launching_thread(threads, crashed, pid)
    marked = [
        replace(
            thread,
            crashed=thread.id == crashed,
            launched=launcher is not None and thread.id == launcher.id,
        )
        for thread in threads
    ]
    return tuple(sorted(marked, key=lambda thread: (not thread.crashed, not thread.launched)))


def is_exiting(threads: Sequence[Thread], pid: int | None = None) -> bool:
    """The main thread had begun to shut the process down."""
    main = next((thread for thread in threads if thread.id == pid), None)
    candidates = threads if pid is None else (main,) if main else ()
    return any(frame.function in _EXITING for thread in candidates for frame in thread.frames)


def _launching_thread(threads: Sequence[Thread], crashed: int | None, pid: int | None) -> Thread | None:
    crashing = next((thread for thread in threads if thread.id == crashed), None)
    if crashing is not None and _runs_python(crashing):
        return crashing
    main_first = sorted((t for t in threads if _runs_python(t)), key=lambda thread: thread.id != pid)
    waiting = next((thread for thread in main_first if _waits_for_work(thread)), None)
    return waiting or next(iter(main_first), None)


def _runs_python(thread: Thread) -> bool:
    return any(frame.kind == "python" for frame in thread.frames)


def _waits_for_work(thread: Thread) -> bool:
    return any(frame.kind == "native" and any(name in frame.function for name in _LAUNCHERS) for frame in thread.frames)


# ---------------------------------------------------------------------------------------- reading them


def _threads_of_core(
    core: Path, executable: Path | None, mappings: Sequence[crash.Mapping], memory: Memory, faults: Faults
) -> list[Thread]:
    def read(mode: NativeReportingMode) -> list[PyThread]:
        if executable is None:
            raise NoStacksError("the executable is not known")
        return _legible(partial(get_process_threads_for_core, core, executable), mode, memory, mappings)

    return _threads(read, lambda: unwind.unwind_core(core, executable, mappings), mappings, True, faults)


def _legible(
    read: Callable[..., Iterable[PyThread]],
    mode: NativeReportingMode,
    memory: Memory,
    mappings: Sequence[crash.Mapping],
) -> list[PyThread]:
    """What pystack reads, where it can read the names of the program, else what we do."""
    try:
        return with_legible_names(list(read(native_mode=mode)), memory, mappings)
    except (PystackError, UnicodeError) as error:
        if mode is NativeReportingMode.OFF and is_illegible(error):
            return python_threads(memory, mappings)
        raise NoStacksError(str(error)) from error


def _threads(
    read: Callable[[NativeReportingMode], list[PyThread]],
    unwind_all: Callable[[], unwind.Stacks],
    mappings: Sequence[crash.Mapping],
    native: bool,
    faults: Faults,
) -> list[Thread]:
    with _without_network():
        try:
            found = read(NativeReportingMode.ALL if native else NativeReportingMode.OFF)
        except (NoStacksError, PystackError, OSError, RuntimeError) as error:
            if not native:
                raise NoStacksError(str(error)) from error
            return _threads_apart(read, unwind_all, faults, str(error))
    stacks = _native_stacks(found, mappings)
    name_callers(stacks.values())
    _mark_approximate(stacks)
    return _merged(found, stacks, faults)


def _threads_apart(
    read: Callable[[NativeReportingMode], list[PyThread]],
    unwind_all: Callable[[], unwind.Stacks],
    faults: Faults,
    reason: str,
) -> list[Thread]:
    """For programs without Python, and for stacks so damaged that pystack gives up on all of them."""
    try:
        stacks = unwind_all()
    except (unwind.UnwindError, OSError) as error:
        raise NoStacksError(f"{reason}; {error}") from error
    try:
        found = read(NativeReportingMode.OFF)
    except (NoStacksError, PystackError, OSError, RuntimeError):
        found = []
    return _merged(found, stacks, faults)


def _merged(found: Sequence[PyThread], stacks: unwind.Stacks, faults: Faults) -> list[Thread]:
    # Each subinterpreter has its own part of a thread's stack; the outer parts come first.
    parts: dict[int, list[PyThread]] = {tid: [] for tid in stacks}
    for each in found:
        parts.setdefault(each.tid, []).append(each)
    parts.pop(0, None)  # threads that had ended, whose Python state was still there
    threads = []
    for tid, same in parts.items():
        python = [_python_frame(frame) for part in same for frame in part.all_frames]
        native = _since_fault(stacks.get(tid, []), faults.get(tid))
        gil = [part.holds_the_gil > 0 for part in same if part.python_version is not None]
        threads.append(
            Thread(
                id=tid,
                name=next((part.name for part in same if part.name), None),
                frames=tuple(_bounded(merge(python[::-1], native))),
                holds_gil=any(gil) if gil else None,
                collecting_garbage=any(map(_collects, same))
                or any(is_interpreter(f) and f.function in _COLLECTING for f in native),
            )
        )
    return threads


def _collects(part: PyThread) -> bool:
    """By the interpreter's own state: a stripped one has no names."""
    return part.is_gc_collecting == 1 and part.holds_the_gil > 0


def _since_fault(native: list[Frame], program_counter: int | None) -> list[Frame]:
    """The stack without the signal handlers that were called for the fault."""
    if program_counter is None:
        return native
    matches = [index for index, frame in enumerate(native) if frame.address == program_counter]
    # A handler that raises the signal of abort() again stands at the same instruction as abort() itself, and so
    # may the handler of ours that is called for that: the first of them all stands last.
    called = [index for index in matches if index and native[index - 1].function == "__restore_rt"]
    return native[next(iter(called[-1:] or matches), 0) :]


def _bounded(frames: list[Frame]) -> list[Frame]:
    """A stack overflow has a hundred thousand frames, nearly all alike."""
    left_out = len(frames) - MAX_INNER_FRAMES - MAX_OUTER_FRAMES
    if left_out <= 0:
        return frames
    return [*frames[:MAX_INNER_FRAMES], gap(left_out), *frames[-MAX_OUTER_FRAMES:]]


def _python_frame(frame: PyFrame) -> PythonFrame:
    line, end_line, column, end_column = frame.code.location
    has_columns = end_column > column >= 0 and end_line == line
    record = Frame(
        kind="python",
        function=frame.code.scope,
        file=frame.code.filename,
        line=line if line > 0 else None,
        column=column if has_columns else None,
        end_column=end_column if has_columns else None,
    )
    return PythonFrame(record, frame.is_entry, frame.is_shim)


def _native_stacks(found: Sequence[PyThread], mappings: Sequence[crash.Mapping]) -> unwind.Stacks:
    known: dict[tuple[int, str], Frame] = {}  # a stack overflow has few different frames, each very often
    stacks: unwind.Stacks = {}
    for thread in found:
        stack = stacks.setdefault(thread.tid, [])
        for frame in thread.native_frames:
            key = frame.address, frame.symbol
            if key not in known:
                known[key] = _native_frame(frame, mappings)
            stack.append(known[key])
    return {tid: stack[::-1] for tid, stack in stacks.items()}


def _native_frame(frame: NativeFrame, mappings: Sequence[crash.Mapping]) -> Frame:
    place = locate(mappings, frame.address)
    has_source = frame.linenumber > 0
    # An inlined call has the address of the frame it was inlined into, which tells it well enough.
    name = frame.symbol.removesuffix(" (inlined)").split("@")[0]
    return Frame(
        kind="native",
        function="??" if name in ("", "???") else name,
        file=frame.path if has_source else None,
        line=frame.linenumber if has_source else None,
        column=frame.colnumber - 1 if has_source and frame.colnumber > 0 else None,
        library=place.path if place else None,
        address=Address(frame.address),
        offset=Address(place.offset) if place else None,
    )


def _mark_approximate(stacks: unwind.Stacks) -> None:
    """Names in stripped libraries are those of the nearest exported function, right or wrong."""
    offsets: dict[str, set[int]] = {}
    inside = {tid: within(stack) for tid, stack in stacks.items()}
    for tid, stack in stacks.items():
        for frame, offset in zip(stack, inside[tid], strict=True):
            if frame.library and offset and not frame.file and frame.function != "??":
                offsets.setdefault(frame.library, set()).add(offset)
    exported = {
        path: symbols.lookup(path, found, exported_only=True)
        for path, found in offsets.items()
        if symbols.is_stripped(path)
    }
    for tid, stack in stacks.items():
        for index, frame in enumerate(stack):
            symbol = exported.get(frame.library or "", {}).get(inside[tid][index] or 0)
            if symbol and not symbol.exact and symbol.name == frame.function and not frame.file:
                stack[index] = replace(frame, approximate=True)


@contextmanager
def _without_network() -> Iterator[None]:
    """libdw would ask the servers in this variable for debug information, and wait for them."""
    servers = os.environ.pop("DEBUGINFOD_URLS", None)
    try:
        yield
    finally:
        if servers is not None:
            os.environ["DEBUGINFOD_URLS"] = servers
