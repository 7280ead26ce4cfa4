"""Python's stacks with their names as they are.

pystack takes every name for ASCII: others it garbles, or it loses the frame, or all frames. They are read here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pystack.types import LocationInfo, PyCodeObject, PyFrame, PyThread

from faultlens.inspection.maps import find
from faultlens.inspection.memory import Memory
from faultlens.inspection.python_frames import PythonFrames
from faultlens.records.crash import Mapping

RUNTIME_SIZE = 1 << 10  # the list of interpreters is near its beginning
GIL_REACH = 8 << 10
INTERPRETER_SIZE = 16 << 10  # 3.13 keeps the list of threads behind a table of 8 KiB
NEXT, INTERPRETER = 8, 16  # in a thread's state
STATUS, ACTIVE = {(3, 12): 24, (3, 13): 32}, 1 << 4
NUMBER_IN_PTHREAD = 720  # of glibc
MAX_THREADS, MAX_FRAMES = 4096, 200_000
OWNED_BY_LOOP = 3
LOST = "???"  # pystack says so


def is_illegible(error: Exception) -> bool:
    """Whether pystack stumbled over a name."""
    return isinstance(error, UnicodeError) or "UnicodeDecodeError" in str(error)


def with_legible_names(threads: Sequence[PyThread], memory: Memory, mappings: Sequence[Mapping]) -> list[PyThread]:
    """Every stack that pystack misread, or of which it lost the outer end, is replaced."""
    python = PythonFrames.find(memory, mappings)
    if python is None:
        return list(threads)
    chains: dict[int, list[list[int]]] = {}
    for state in states(python, mappings):
        chains.setdefault(thread_number(python, state), []).append(list(frame_chain(python, state)))
    for thread in threads:
        of_thread = chains.get(thread.tid, [])
        if len(of_thread) == 1 and not _is_whole(thread, python, of_thread[0]):
            thread.frame = _linked(python, of_thread[0])
    return list(threads)


def _is_whole(thread: PyThread, python: PythonFrames, chain: Sequence[int]) -> bool:
    """A name that was misread begins with a length in binary."""
    count = 0
    for frame in thread.frames:
        if any(name == LOST or min(name, default=" ") < " " for name in (frame.code.filename, frame.code.scope)):
            return False
        count += 1
    of_the_program = (frame for frame in chain if python.code(frame) and not _is_shim(python, frame))
    return count >= len(chain) or count >= sum(1 for _ in of_the_program)


def python_threads(memory: Memory, mappings: Sequence[Mapping]) -> list[PyThread]:
    """Without the help of pystack. Nothing of releases whose layout is not known."""
    python = PythonFrames.find(memory, mappings)
    if python is None:
        return []
    return [
        PyThread(
            tid=thread_number(python, state),
            frame=_linked(python, list(frame_chain(python, state))),
            native_frames=[],
            holds_the_gil=int(_holds_gil(python, state)),
            is_gc_collecting=-1,
            python_version=python.layout.version,
        )
        for state in states(python, mappings)
    ]


# ------------------------------------------------------------------------------------- states of threads


def states(python: PythonFrames, mappings: Sequence[Mapping]) -> list[int]:
    """The main interpreter stands in the runtime behind the one that was made last."""
    interpreters = _pointers(python, mappings, python.runtime, RUNTIME_SIZE)
    found = (state for each in reversed(interpreters) for state in _states_of(python, mappings, each))
    return list(dict.fromkeys(found))


def _states_of(python: PythonFrames, mappings: Sequence[Mapping], interpreter: int) -> Iterator[int]:
    """A thread's state points to its interpreter, and to the next one."""
    pointers = _pointers(python, mappings, interpreter, INTERPRETER_SIZE)
    heads = (word for word in pointers if python.word(word + INTERPRETER) == interpreter and not python.word(word))
    state, count = next(heads, 0), 0
    while state and count < MAX_THREADS and python.word(state + INTERPRETER) == interpreter:
        yield state
        state, count = python.word(state + NEXT), count + 1


def _pointers(python: PythonFrames, mappings: Sequence[Mapping], address: int, size: int) -> list[int]:
    data = python.memory.read(address, size)
    words = dict.fromkeys(memoryview(data[: len(data) // 8 * 8]).cast("Q"))
    return [word for word in words if word % 8 == 0 and word and _is_writable(mappings, word)]


def _is_writable(mappings: Sequence[Mapping], address: int) -> bool:
    mapping = find(mappings, address)
    return mapping is not None and "w" in mapping.permissions


def thread_number(python: PythonFrames, state: int) -> int:
    number = python.word(state + python.layout.thread)
    if python.layout.version == (3, 10):
        number = python.word(number + NUMBER_IN_PTHREAD)
    return number & 0xFFFFFFFF


def _holds_gil(python: PythonFrames, state: int) -> bool:
    """Until 3.11 the runtime notes who had the lock last, and who has it."""
    if status := STATUS.get(python.layout.version):
        return bool(python.word(state + status) & ACTIVE)
    data = python.memory.read(python.runtime, GIL_REACH)
    return list(memoryview(data[: len(data) // 8 * 8]).cast("Q")).count(state) >= 2


# ------------------------------------------------------------------------------------------------ frames


def frame_chain(python: PythonFrames, state: int) -> Iterator[int]:
    """Innermost first."""
    frame = python.word(state + python.layout.current)
    if python.layout.through is not None:
        frame = python.word(frame + python.layout.through)
    count = 0
    while frame and count < MAX_FRAMES:
        yield frame
        frame, count = python.previous(frame), count + 1


def _linked(python: PythonFrames, chain: Sequence[int]) -> PyFrame | None:
    """As pystack has them: outermost first."""
    known: dict[tuple[int, int], PyCodeObject] = {}  # a recursion has few different frames
    inner: PyFrame | None = None
    for index, frame in enumerate(chain):
        is_shim = _is_shim(python, frame)
        if not is_shim and not python.code(frame):
            continue
        key = python.code(frame), python.word(frame + python.layout.instruction)
        if key not in known:
            known[key] = _code(python, frame)
        outer = PyFrame(None, inner, known[key], {}, {}, _is_entry(python, chain, index), is_shim)
        if inner is not None:
            inner.prev = outer
        inner = outer
    return inner


def _code(python: PythonFrames, frame: int) -> PyCodeObject:
    told = python.told(frame)
    if told is None:
        return PyCodeObject(LOST, LOST, LocationInfo(0, 0, 0, 0))
    line, column, end = told.line or 0, told.column, told.end_column
    return PyCodeObject(told.file or LOST, told.function, LocationInfo(line, line, column or 0, end or 0))


def _is_entry(python: PythonFrames, chain: Sequence[int], index: int) -> bool:
    """Whether a call of the interpreter's loop begins with this frame."""
    layout = python.layout
    if layout.entry is not None:
        return bool(python.word(chain[index] + layout.entry) & 1)
    if layout.owner is None:
        return True
    outer = chain[index + 1 : index + 2]
    return any(_is_shim(python, frame) for frame in outer) or (index == 0 and _is_shim(python, chain[0]))


def _is_shim(python: PythonFrames, frame: int) -> bool:
    """Made by the loop itself, from 3.12 on: has no code of the program."""
    owner = python.layout.owner
    return owner is not None and python.word(frame + owner) & 0xFF == OWNED_BY_LOOP
