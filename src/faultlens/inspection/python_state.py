"""What Python itself knows of where it runs, read from its memory: `sys.path`, `sys.prefix`, `sys.executable`.

No offset of a Python release is written down here. The interpreter's state is reached from the exported symbol
`_PyRuntime`, and `sys.__dict__` is recognised in it by what it holds; only the objects themselves (dict, list, str)
have a layout, which their types' sizes confirm."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from faultlens.inspection import symbols
from faultlens.inspection.maps import find
from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping, Program, PythonInfo
from faultlens.target_env.packages import LIBPYTHON, find_python

RUNTIME_SIZE = 8 << 10  # of _PyRuntime: the list of interpreters is near its beginning
INTERPRETER_SIZE = 32 << 10  # of an interpreter's state: 3.13 keeps `sys` behind a table of 8 KiB
KEYS_SIZE = 16 << 10  # of the names and values of `sys`
NAMES_IN_SYS = range(40, 2000)
MAX_TEXT = 4096
TYPE, SIZE, ITEMS, KEYS, STATE = 8, 16, 24, 32, 32  # offsets in objects
BASIC_SIZE = 32  # offset in a type: how large its objects are
DICT_SIZE, LIST_SIZE = 48, 40
# Where the characters begin in a str, if ASCII and if not, by the size of the type: until 3.11, from 3.12 on.
HEADERS = {80: (48, 72), 64: (40, 56)}
KINDS = (2, 16)  # bit of the state where the width of a character begins: until 3.13, from 3.14 on
CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


class PythonState(NamedTuple):
    path: tuple[str, ...]
    prefix: str | None
    executable: str | None


def python_of(memory: Memory, mappings: Sequence[Mapping], program: Program, prefix: str | None) -> PythonInfo | None:
    """What it says of itself comes before what its files and the command (`prefix`) tell."""
    state = read_state(memory, mappings, program.executable)
    if state and state.prefix:
        prefix = state.prefix if Path(state.prefix, "pyvenv.cfg").is_file() else None
    return find_python(
        mappings,
        program.executable,
        prefix,
        path=state.path if state else (),
        directory=program.directory,
        variables=program.environment,
    )


def read_state(memory: Memory, mappings: Sequence[Mapping], executable: str | None) -> PythonState | None:
    """None without a Python, before it is ready, after it has ended, and where it keeps its objects otherwise."""
    for path in dict.fromkeys(mapping.path for mapping in mappings if mapping.path):
        if LIBPYTHON.search(path) or path == executable:
            base = next(mapping.start for mapping in mappings if mapping.path == path)
            names = ("_PyRuntime", "PyDict_Type", "PyList_Type", "PyUnicode_Type")
            found = [base + value for name in names if (value := symbols.value_of(path, name)) is not None]
            if len(found) == len(names):
                return Objects(memory, mappings, *found[1:]).state(found[0])
    return None


class Objects:
    """Objects of a Python that stands still. Whatever is not what it should be reads as nothing."""

    def __init__(self, memory: Memory, mappings: Sequence[Mapping], dict_: int, list_: int, str_: int) -> None:
        self._memory = memory
        self._mappings = mappings
        self._dict, self._list, self._str = dict_, list_, str_

    def state(self, runtime: int) -> PythonState | None:
        sizes = [self._word(type_ + BASIC_SIZE) for type_ in (self._dict, self._list)]
        if sizes != [DICT_SIZE, LIST_SIZE] or self._word(self._str + BASIC_SIZE) not in HEADERS:
            return None  # a free-threaded Python, a debug build, another implementation
        for interpreter in self._pointers(runtime, RUNTIME_SIZE):
            for candidate in self._pointers(interpreter, INTERPRETER_SIZE):
                if self._is(candidate, self._dict) and self._word(candidate + SIZE) in NAMES_IN_SYS:
                    names = self.named(candidate, ("path", "prefix", "executable", "path_hooks"))
                    if len(names) == 4:
                        path = tuple(self._texts(names["path"]))
                        state = PythonState(path, self.text(names["prefix"]), self.text(names["executable"]))
                        return state if path else None  # Python empties it at its end
        return None

    def named(self, dictionary: int, wanted: Collection[str]) -> dict[str, int]:
        """In the table of a dict a name is followed by its value, whatever else an entry has."""
        words = self._words(self._word(dictionary + KEYS), KEYS_SIZE)
        found: dict[str, int] = {}
        for name, value in pairwise(words):
            text = self.text(name) if self._is_mapped(name) else None
            if text is not None and text in wanted:
                found.setdefault(text, value)
        return found

    def _texts(self, list_: int) -> Iterator[str]:
        """What is no str in `sys.path` is passed over by Python too."""
        count = min(self._word(list_ + SIZE), MAX_TEXT) if self._is(list_, self._list) else 0
        items = self._words(self._word(list_ + ITEMS), 8 * count)
        return (text for item in items if (text := self.text(item)) is not None)

    def text(self, address: int) -> str | None:
        if not self._is(address, self._str):
            return None
        length, state = self._word(address + SIZE), self._word(address + STATE)
        kind = next((bit for bit in KINDS if state >> bit & 7 in CODECS and state >> bit + 3 & 1), None)
        if kind is None or length > MAX_TEXT:
            return None
        width, is_ascii = state >> kind & 7, state >> kind + 4 & 1
        header = HEADERS[self._word(self._str + BASIC_SIZE)][0 if is_ascii else 1]
        data = self._memory.read(address + header, length * width)
        return data.decode(CODECS[width], "surrogatepass") if len(data) == length * width else None

    def _is(self, address: int, type_: int) -> bool:
        return self._word(address + TYPE) == type_

    def _pointers(self, address: int, size: int) -> list[int]:
        return [word for word in dict.fromkeys(self._words(address, size)) if self._is_mapped(word)]

    def _is_mapped(self, word: int) -> bool:
        mapping = find(self._mappings, word) if word and word % 8 == 0 else None
        return mapping is not None and "w" in mapping.permissions

    def _words(self, address: int, size: int) -> tuple[int, ...]:
        data = self._memory.read(address, size)
        return tuple(memoryview(data[: len(data) // 8 * 8]).cast("Q"))

    def _word(self, address: int) -> int:
        return int.from_bytes(self._memory.read(address, 8), "little")
