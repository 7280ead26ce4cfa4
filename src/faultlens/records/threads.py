"""The threads of a process: their stacks, what they wait for, and what was thrown on them."""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Address, Record


class Variable(Record, frozen=True):
    """A variable of the user's code: numbers and sizes, never texts."""

    name: str
    type: str  # "int", "numpy.ndarray"
    value: int | float | None = None  # of a number
    numbers: tuple[int, ...] | None = None  # of a short list or tuple of whole numbers
    length: int | None = None  # of a list, tuple, str, bytes
    shape: tuple[int, ...] | None = None  # of an array …
    dtype: str | None = None  # … and its type


class Frame(Record, frozen=True):
    """One call on a stack, innermost first in `Thread.frames`."""

    kind: Literal["python", "native"]
    function: str
    file: str | None = None  # source file
    line: int | None = None
    column: int | None = None  # of the failing expression, counted from 0
    end_column: int | None = None
    library: str | None = None  # native: the file the code came from
    address: Address | None = None
    offset: Address | None = None  # native: within the library file
    # The symbol is only the nearest exported one before the address and may be wrong.
    approximate: bool = False
    # Of the program itself, which its file does not tell: `python -c`, standard input, a program without Python.
    own: bool = False
    variables: tuple[Variable, ...] = ()  # Python: of the innermost frames of the user's own


class Lock(Record, frozen=True):
    """A lock that a thread waits for, as it lay in memory."""

    kind: Literal["mutex", "rwlock", "RLock"]  # of pthreads, or of Python
    address: Address
    holder: int | None = None  # the thread that it says has it


class SystemCall(Record, frozen=True):
    """What a thread stood in at the time limit, and which processes of the program can end it."""

    name: Literal["read", "write", "wait"]
    target: Literal["pipe", "socket", "file", "process"]
    pipe: str | None = None  # as the kernel names it: "pipe:[4711]"
    # That have the other end of the pipe open; of "wait", whose end is waited for, empty for any child.
    processes: tuple[int, ...] = ()


class Thread(Record, frozen=True):
    id: int
    frames: tuple[Frame, ...] = ()
    name: str | None = None  # as the kernel knows it
    python_name: str | None = None
    crashed: bool = False
    launched: bool = False  # the Python thread whose call started the work that crashed
    holds_gil: bool | None = None
    collecting_garbage: bool = False
    stack_pointer: Address | None = None
    program_counter: Address | None = None
    lock: Lock | None = None  # that it waits for; only where it was still running
    call: SystemCall | None = None  # at its time limit
    cpu: float | None = None  # seconds of CPU time, and …
    moved: int | None = None  # … bytes read or written by system calls, in the time of Crash.activity


class CppException(Record, frozen=True):
    """A C++ exception that was thrown before the death, caught or not."""

    type: str
    thread: int
    seconds_before: float
    message: str | None = None
    frames: tuple[Frame, ...] = ()
