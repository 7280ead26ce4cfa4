"""The variables of the user's innermost frames, read from memory: numbers, sizes and shapes, no texts.

What a line was given often says at once why it died. Objects are known by the names of their types; whatever is not
what it should be reads as nothing."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from faultlens.inspection.frames import is_own
from faultlens.inspection.memory import Memory
from faultlens.inspection.python_frames import TYPE, PythonFrames
from faultlens.inspection.python_threads import frame_chain, states, thread_number
from faultlens.records.crash import Frame, Mapping, Thread, Variable
from faultlens.text.secrets import is_secret_name

FRAMES = 3  # of a thread
MOST = 40  # variables of a frame
LONGEST_NAME = 64
NUMBERS = 8  # of a list that is kept as it is
DIGITS = 3  # of 30 bits: what fits 63
MAX_RANK = 64
NAME_OF_TYPE = 24  # in a type
CODE_NAMES = 32  # in a code: the names that it uses, among them those of its module
SIZE, ITEMS, VALUE = 16, 24, 16  # in objects
DIGITS_AT = 24
ARRAY_RANK, ARRAY_DIMENSIONS, ARRAY_TYPE, TYPE_LETTER = 24, 32, 56, 25
DTYPES = {
    "?": "bool", "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "l": "int64",
    "L": "uint64", "q": "int64", "Q": "uint64", "e": "float16", "f": "float32", "d": "float64", "F": "complex64",
    "D": "complex128", "O": "object", "S": "bytes", "U": "str",
}  # fmt: skip
SIZED = frozenset({"list", "tuple", "str", "bytes", "bytearray"})


def with_variables(threads: Sequence[Thread], memory: Memory, mappings: Sequence[Mapping]) -> tuple[Thread, ...]:
    """Of the thread that crashed and the one that launched the work."""
    python = PythonFrames.find(memory, mappings)
    if python is None or python.layout.globals is None:
        return tuple(threads)
    reader = Values(python)
    chains = {thread_number(python, state): state for state in states(python, mappings)}
    return tuple(
        replace(thread, frames=tuple(reader.filled(thread.frames, chains[thread.id])))
        if (thread.crashed or thread.launched) and thread.id in chains
        else thread
        for thread in threads
    )


def variables_or_gap(
    threads: tuple[Thread, ...], memory: Memory, mappings: Sequence[Mapping], gaps: list[str]
) -> tuple[Thread, ...]:
    """The same, for a look that must go on whatever the memory is like."""
    try:
        return with_variables(threads, memory, mappings)
    except Exception as error:
        gaps.append(f"variables: {type(error).__name__}: {error}")
        return threads


class Values:
    def __init__(self, python: PythonFrames) -> None:
        self._python = python
        self._word = python.word

    def filled(self, frames: Sequence[Frame], state: int) -> Iterator[Frame]:
        """The frames as they were, the innermost of the user's own with their variables."""
        interpreted = iter(list(frame_chain(self._python, state)))
        left = FRAMES
        for frame in frames:
            if left and frame.kind == "python" and is_own(frame):
                left -= 1
                address = next((each for each in interpreted if self._is(each, frame)), 0)
                yield replace(frame, variables=tuple(self.variables(address))) if address else frame
            else:
                yield frame

    def _is(self, address: int, frame: Frame) -> bool:
        told = self._python.told(address)
        return told is not None and (told.file, told.line) == (frame.file, frame.line)

    def variables(self, frame: int) -> Iterator[Variable]:
        for name, address in self._addresses(frame):
            if len(name) <= LONGEST_NAME and not name.startswith("__") and not is_secret_name(name):
                variable = self.variable(name, address)
                if variable is not None:
                    yield variable

    def _addresses(self, frame: int) -> Iterator[tuple[str, int]]:
        layout, code = self._python.layout, self._python.code(frame)
        count = min(self._word(code + layout.local_count) & 0xFFFFFFFF, MOST)
        names = list(self._texts(self._word(code + layout.local_names), count))
        if names:
            for index, name in enumerate(names):
                yield name, self._word(frame + layout.variables + 8 * index)
            return
        # Code of a module has its variables in a dictionary: those that it names.
        used = set(self._texts(self._word(code + CODE_NAMES), 8 * MOST))
        space = self._word(frame + (layout.globals or 0))
        yield from list(self._python.objects.named(space, used).items())[:MOST]

    def _texts(self, names: int, most: int) -> Iterator[str]:
        """Of a tuple."""
        for index in range(min(self._word(names + SIZE), most)):
            text = self._python.objects.text(self._word(names + ITEMS + 8 * index))
            if text is not None:
                yield text

    def variable(self, name: str, address: int) -> Variable | None:
        """None for what is no number and has no size."""
        kind = self._type(address)
        if kind == "int":
            value = self._integer(address)
            return Variable(name=name, type=kind, value=value) if value is not None else None
        if kind == "bool":
            return Variable(name=name, type=kind, value=int(bool(self._integer(address))))
        if kind == "float":
            (real,) = struct.unpack("<d", self._python.memory.read(address + VALUE, 8).ljust(8, b"\0"))
            return Variable(name=name, type=kind, value=real) if real == real and abs(real) != float("inf") else None
        if kind == "NoneType":
            return Variable(name=name, type="None")
        if kind in SIZED:
            return Variable(
                name=name, type=kind, length=self._word(address + SIZE), numbers=self._numbers(address, kind)
            )
        return self._array(name, address) if kind == "numpy.ndarray" else None

    def _type(self, address: int) -> str:
        name = self._word(self._word(address + TYPE) + NAME_OF_TYPE)
        text = self._python.memory.read(name, 64).partition(b"\0")[0] if name else b""
        return text.decode("ascii", "replace")

    def _integer(self, address: int) -> int | None:
        """None beyond 63 bits."""
        tag = self._word(address + SIZE)
        if self._python.layout.version >= (3, 12):
            count, negative = tag >> 3, tag & 3 == 2
        else:
            signed = tag - (1 << 64) if tag >> 63 else tag
            count, negative = abs(signed), signed < 0
        if count > DIGITS:
            return None
        data = self._python.memory.read(address + DIGITS_AT, 4 * count)
        digits = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
        value = sum(digit << 30 * index for index, digit in enumerate(digits))
        return None if value >> 63 else -value if negative else value

    def _numbers(self, address: int, kind: str) -> tuple[int, ...] | None:
        length = self._word(address + SIZE)
        if kind not in ("list", "tuple") or not 0 < length <= NUMBERS:
            return None
        first = self._word(address + ITEMS) if kind == "list" else address + ITEMS
        items = [self._word(first + 8 * index) for index in range(length)]
        values = [self._integer(item) for item in items if self._type(item) == "int"]
        return tuple(value for value in values if value is not None) if len(values) == length else None

    def _array(self, name: str, address: int) -> Variable | None:
        rank = self._word(address + ARRAY_RANK) & 0xFFFFFFFF
        if rank > MAX_RANK:
            return None
        dimensions = self._word(address + ARRAY_DIMENSIONS)
        shape = tuple(self._word(dimensions + 8 * index) for index in range(rank))
        letter = self._python.memory.read(self._word(address + ARRAY_TYPE) + TYPE_LETTER, 1).decode("latin-1")
        sound = math.prod(shape) < 1 << 47  # bytes that a process can have; what overran memory may have hit this, too
        return Variable(name=name, type="numpy.ndarray", shape=shape, dtype=DTYPES.get(letter)) if sound else None
