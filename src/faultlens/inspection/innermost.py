"""The innermost Python lines of a living process, however deep its stack is: for a program that may be killed soon.

Complete stacks come from pystack, which walks to the outermost frame and takes a second for 10,000 of them. Here only a
few are read, in a millisecond: the interpreter keeps a pointer to the frame that it runs on the native stack."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from faultlens.inspection.freeze import NO_SYSTEM_CALL, Freeze
from faultlens.inspection.maps import parse_maps
from faultlens.inspection.memory import ProcessMemory
from faultlens.inspection.python_frames import PythonFrames
from faultlens.records.crash import Frame
from faultlens.system.procfs import read_text

MOST = 40  # frames
STACK_REACH = 64 << 10  # native code that the interpreter called
CANDIDATES = 24
DEEP = 1000  # callers
FIRST_ADDRESS, LAST_ADDRESS = 1 << 16, 1 << 47  # of a process


def innermost_lines(pid: int) -> tuple[Frame, ...]:
    """Of the thread that runs, the main thread first. Nothing without Python, and of releases that are not known."""
    mappings = parse_maps(read_text(f"/proc/{pid}/maps") or "")
    with ProcessMemory(pid) as memory, Freeze(pid) as freeze:
        python = PythonFrames.find(memory, mappings)
        if python is None:
            return ()
        threads = sorted(
            freeze.registers.items(), key=lambda each: (each[1]["orig_rax"] != NO_SYSTEM_CALL, each[0] != pid)
        )
        found = (tuple(islice(_lines(python, registers), MOST)) for _, registers in threads)
        return next((frames for frames in found if frames), ())


def _lines(python: PythonFrames, registers: dict[str, int]) -> Iterator[Frame]:
    frame = _innermost(python, registers)
    while frame and python.code(frame):
        told = python.told(frame)
        if told is not None and told.line is not None:  # others are the interpreter's own
            yield told
        frame = _previous(python, frame)


def _innermost(python: PythonFrames, registers: dict[str, int]) -> int:
    """Of the pointers to frames in registers and on the stack the one that leads to most others: what calls that
    have returned left there leads elsewhere. In a deep recursion the others are out of reach."""
    stack = python.memory.read(registers["rsp"], STACK_REACH)
    words = (int.from_bytes(stack[at : at + 8], "little") for at in range(0, len(stack) - 7, 8))
    pointers = dict.fromkeys(
        word for word in (*registers.values(), *words) if FIRST_ADDRESS <= word < LAST_ADDRESS and word % 8 == 0
    )
    candidates = list(islice((word for word in pointers if python.code(word)), CANDIDATES))

    def callers(candidate: int) -> tuple[bool, int, int]:
        found = set(islice(_callers(python, candidate), DEEP))
        return len(found) == DEEP, len(found.intersection(candidates)), len(found)

    return max(candidates, key=callers, default=0)


def _callers(python: PythonFrames, frame: int) -> Iterator[int]:
    while frame := _previous(python, frame):
        yield frame


def _previous(python: PythonFrames, frame: int) -> int:
    """Between two runs of the interpreter stands, from 3.12 on, a frame without code."""
    previous = python.previous(frame)
    return previous if not previous or python.code(previous) else python.previous(previous)
