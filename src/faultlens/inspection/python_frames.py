"""Frames and code objects of the interpreter, read from the memory of a process or core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from faultlens.inspection import symbols
from faultlens.inspection.code_lines import CODE_UNIT, Location, location_in_entries, location_in_pairs
from faultlens.inspection.memory import Memory, read_u64
from faultlens.inspection.python_state import Objects
from faultlens.records.crash import Frame, Mapping
from faultlens.target_env.packages import LIBPYTHON

TYPE, BASIC_SIZE = 8, 32
BYTES, BYTES_SIZE = 32, 16  # of a bytes object: where its bytes begin, how many there are
MAX_LINES = 1 << 20
NAMES = ("_PyRuntime", "PyCode_Type", "PyDict_Type", "PyList_Type", "PyUnicode_Type")
SINCE_3_10 = "PyModule_AddObjectRef"  # the code objects of 3.9 have the same size, and other tables of lines


class Layout(NamedTuple):
    """Offsets in a frame, its code and the state of a thread, from the headers of a release."""

    version: tuple[int, int]
    code: int
    previous: int
    instruction: int  # pointer to the instruction, or (3.10) its number
    first_line: int
    file: int
    name: int
    lines: int
    current: int  # in a thread's state: pointer to its frame, or to what points to it
    through: int | None  # where in that pointer's target
    thread: int  # number of the thread; in 3.10 the address of its pthread structure
    entry: int | None = None  # in a frame: whether it is the first of a call of the interpreter's loop
    owner: int | None = None  # in a frame: who holds it; the loop itself holds frames without code of the program
    globals: int | None = None  # in a frame; None where variables are not read
    variables: int = 72  # in a frame: where they begin
    local_count: int = 72  # in a code
    local_names: int = 96  # in a code


# By the size of a code object, at whose end its instructions begin.
LAYOUTS = {
    176: Layout((3, 10), 32, 24, 96, 40, 104, 112, 120, current=24, through=None, thread=176),
    184: Layout(
        (3, 11), 32, 48, 56, 72, 112, 120, 136, current=56, through=8, thread=160, entry=68, globals=8, local_count=76
    ),
    192: Layout((3, 12), 0, 8, 56, 68, 112, 120, 136, current=56, through=0, thread=144, owner=70, globals=24),
    200: Layout((3, 13), 0, 8, 56, 68, 112, 120, 136, current=72, through=None, thread=160, owner=70, globals=24),
}


class PythonFrames:
    """Of a Python whose layout is known. Whatever is not what it should be reads as nothing."""

    def __init__(self, memory: Memory, objects: Objects, runtime: int, code_type: int, code_size: int) -> None:
        self.memory = memory
        self.runtime = runtime
        self.layout = LAYOUTS[code_size]
        self.objects = objects
        self._code_type = code_type
        self._code_size = code_size

    @classmethod
    def find(cls, memory: Memory, mappings: Sequence[Mapping]) -> PythonFrames | None:
        for path in dict.fromkeys(mapping.path for mapping in mappings if mapping.path):
            if LIBPYTHON.search(path) or path == mappings[0].path:
                base = next(mapping.start for mapping in mappings if mapping.path == path)
                found = [base + value for name in NAMES if (value := symbols.value_of(path, name)) is not None]
                size = read_u64(memory, found[1] + BASIC_SIZE) if len(found) == len(NAMES) else None
                if size in LAYOUTS and symbols.value_of(path, SINCE_3_10) is not None:
                    return cls(memory, Objects(memory, mappings, *found[2:]), found[0], found[1], size)
        return None

    def code(self, frame: int) -> int:
        code = self.word(frame + self.layout.code)
        return code if code and self.word(code + TYPE) == self._code_type else 0

    def previous(self, frame: int) -> int:
        return self.word(frame + self.layout.previous)

    def told(self, frame: int) -> Frame | None:
        """The frame with its names and its line."""
        layout, code = self.layout, self.code(frame)
        file, name = (self.objects.text(self.word(code + offset)) for offset in (layout.file, layout.name))
        if not code or file is None or name is None:
            return None
        place = self._location(frame, code)
        return Frame(
            kind="python",
            function=name,
            file=file,
            line=place.line if place else None,
            column=place.column if place else None,
            end_column=place.end_column if place else None,
        )

    def _location(self, frame: int, code: int) -> Location | None:
        table = self.word(code + self.layout.lines)
        size = min(self.word(table + BYTES_SIZE), MAX_LINES)
        entries = self.memory.read(table + BYTES, size)
        first = self.word(code + self.layout.first_line) & 0xFFFFFFFF
        at = self.word(frame + self.layout.instruction)
        if self.layout.version == (3, 10):
            return location_in_pairs(entries, first, CODE_UNIT * (at & 0xFFFFFFFF))
        return location_in_entries(entries, first, at - code - self._code_size)

    def word(self, address: int) -> int:
        return read_u64(self.memory, address) or 0
