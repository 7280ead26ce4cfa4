"""The innermost Python lines of a living process, however deep its stack is: for a program that may be killed soon.

Complete stacks come from pystack, which walks to the outermost frame and takes a second for 10,000 of them. Here only a
few are read, in a millisecond: the interpreter keeps a pointer to the frame that it runs on the native stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from faultlens.inspection import symbols
from faultlens.inspection.freeze import NO_SYSTEM_CALL, Freeze
from faultlens.inspection.maps import parse_maps
from faultlens.inspection.memory import ProcessMemory, read_u64
from faultlens.inspection.python_state import Objects
from faultlens.records.crash import Frame, Mapping
from faultlens.system.procfs import read_text
from faultlens.target_env.packages import LIBPYTHON

MOST = 40  # frames
STACK_REACH = 64 << 10  # native code that the interpreter called
CANDIDATES = 24
DEEP = 1000  # callers
TYPE, BASIC_SIZE = 8, 32
BYTES, BYTES_SIZE = 32, 16  # of a bytes object: where its bytes begin, how many there are
CODE_UNIT = 2
MAX_LINES = 1 << 20
FIRST_ADDRESS, LAST_ADDRESS = 1 << 16, 1 << 47  # of a process


class _Layout(NamedTuple):
    """Offsets in a frame and its code, from the headers of a release."""

    code: int
    previous: int
    instruction: int  # pointer to the instruction, or (3.10) its number
    first_line: int
    file: int
    name: int
    lines: int


# By the size of a code object, at whose end its instructions begin.
LAYOUTS = {
    176: _Layout(code=32, previous=24, instruction=96, first_line=40, file=104, name=112, lines=120),  # 3.10
    184: _Layout(code=32, previous=48, instruction=56, first_line=72, file=112, name=120, lines=136),  # 3.11
    192: _Layout(code=0, previous=8, instruction=56, first_line=68, file=112, name=120, lines=136),  # 3.12
    200: _Layout(code=0, previous=8, instruction=56, first_line=68, file=112, name=120, lines=136),  # 3.13
}
NUMBERED = 176  # of which instructions are numbered


def innermost_lines(pid: int) -> tuple[Frame, ...]:
    """Of the thread that runs, the main thread first. Nothing without Python, and of releases that are not known."""
    mappings = parse_maps(read_text(f"/proc/{pid}/maps") or "")
    with ProcessMemory(pid) as memory, Freeze(pid) as freeze:
        python = _python(memory, mappings)
        if python is None:
            return ()
        threads = sorted(
            freeze.registers.items(), key=lambda each: (each[1]["orig_rax"] != NO_SYSTEM_CALL, each[0] != pid)
        )
        found = (tuple(islice(python.frames(registers), MOST)) for _, registers in threads)
        return next((frames for frames in found if frames), ())


def _python(memory: ProcessMemory, mappings: Sequence[Mapping]) -> _Python | None:
    names = ("PyCode_Type", "PyDict_Type", "PyList_Type", "PyUnicode_Type")
    for path in dict.fromkeys(mapping.path for mapping in mappings if mapping.path):
        if LIBPYTHON.search(path) or path == mappings[0].path:
            base = next(mapping.start for mapping in mappings if mapping.path == path)
            found = [base + value for name in names if (value := symbols.value_of(path, name)) is not None]
            size = read_u64(memory, found[0] + BASIC_SIZE) if len(found) == len(names) else None
            if size in LAYOUTS:
                return _Python(memory, Objects(memory, mappings, *found[1:]), found[0], size)
    return None


class _Python:
    def __init__(self, memory: ProcessMemory, objects: Objects, code_type: int, code_size: int) -> None:
        self._memory = memory
        self._objects = objects
        self._code_type = code_type
        self._code_size = code_size
        self._layout = LAYOUTS[code_size]

    def frames(self, registers: dict[str, int]) -> Iterator[Frame]:
        frame = self._innermost(registers)
        while frame and (code := self._code(frame)):
            told = self._frame(frame, code)
            if told is not None and told.line is not None:  # others are the interpreter's own
                yield told
            frame = self._previous(frame)

    def _innermost(self, registers: dict[str, int]) -> int:
        """Of the pointers to frames in registers and on the stack the one that leads to most others: what calls that
        have returned left there leads elsewhere. In a deep recursion the others are out of reach."""
        stack = self._memory.read(registers["rsp"], STACK_REACH)
        words = (int.from_bytes(stack[at : at + 8], "little") for at in range(0, len(stack) - 7, 8))
        pointers = dict.fromkeys(
            word for word in (*registers.values(), *words) if FIRST_ADDRESS <= word < LAST_ADDRESS and word % 8 == 0
        )
        candidates = list(islice((word for word in pointers if self._code(word)), CANDIDATES))

        def callers(candidate: int) -> tuple[bool, int, int]:
            found = set(islice(self._callers(candidate), DEEP))
            return len(found) == DEEP, len(found.intersection(candidates)), len(found)

        return max(candidates, key=callers, default=0)

    def _callers(self, frame: int) -> Iterator[int]:
        while frame := self._previous(frame):
            yield frame

    def _previous(self, frame: int) -> int:
        """Between two runs of the interpreter stands, from 3.12 on, a frame without code."""
        previous = self._word(frame + self._layout.previous)
        return previous if not previous or self._code(previous) else self._word(previous + self._layout.previous)

    def _code(self, frame: int) -> int:
        code = self._word(frame + self._layout.code)
        return code if code and self._word(code + TYPE) == self._code_type else 0

    def _frame(self, frame: int, code: int) -> Frame | None:
        layout = self._layout
        file, name = (self._objects.text(self._word(code + offset)) for offset in (layout.file, layout.name))
        if file is None or name is None:
            return None
        return Frame(kind="python", function=name, file=file, line=self._line(frame, code))

    def _line(self, frame: int, code: int) -> int | None:
        table = self._word(code + self._layout.lines)
        size = min(self._word(table + BYTES_SIZE), MAX_LINES)
        entries = self._memory.read(table + BYTES, size)
        first = self._word(code + self._layout.first_line) & 0xFFFFFFFF
        at = self._word(frame + self._layout.instruction)
        if self._code_size == NUMBERED:
            return line_of_pairs(entries, first, CODE_UNIT * (at & 0xFFFFFFFF))
        return line_of_locations(entries, first, at - code - self._code_size)

    def _word(self, address: int) -> int:
        return read_u64(self._memory, address) or 0


def line_of_pairs(table: bytes, line: int, offset: int) -> int | None:
    """Python 3.10: how many bytes of instructions, how many lines further."""
    end = 0
    for at in range(0, len(table) - 1, 2):
        end += table[at]
        further = int.from_bytes(table[at + 1 : at + 2], "little", signed=True)
        line += further if further != -128 else 0
        if offset < end:
            return line if further != -128 else None
    return None


def line_of_locations(table: bytes, line: int, offset: int) -> int | None:
    """From 3.11 on: Objects/locations.md of CPython."""
    at = end = 0
    while at < len(table):
        kind, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        if kind in (13, 14):
            line += _signed(_variable(table, at + 1))
        elif 10 <= kind <= 12:
            line += kind - 10
        end += CODE_UNIT * units
        if offset < end:
            return line if kind != 15 else None
        at += 1
        while at < len(table) and not table[at] & 0x80:  # only the first byte of an entry has it
            at += 1
    return None


def _variable(table: bytes, at: int) -> int:
    value = shift = 0
    while at < len(table):
        value |= (table[at] & 63) << shift
        if not table[at] & 64:
            break
        shift, at = shift + 6, at + 1
    return value


def _signed(value: int) -> int:
    return -(value >> 1) if value & 1 else value >> 1
