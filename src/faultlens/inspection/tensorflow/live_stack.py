"""The part of a thread's stack that is in use, and which call uses which part of it.

Below every call lie words of earlier ones that nobody overwrote. What was found on a stack is only believed where the
frames of the calls that are under way explain it.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from faultlens.inspection.tensorflow.cpp import WORD
from faultlens.inspection.tensorflow.pages import Pages
from faultlens.records.crash import Frame

# A stack that overflowed has many megabytes of the same calls: only its two ends are read.
INNER_BYTES = 512 << 10
OUTER_BYTES = 256 << 10
OUTERMOST = 4 << 10
BEYOND = 64 << 10
GUARD = 64 << 10  # how far beyond its end an overflowing stack may have reached
# Where pointers are kept that are being worked with.
_REGISTERS = "rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r12 r13 r14 r15".split()
# Where threads of TensorFlow's pools begin: what stands there is as old as the thread.
_LOOP = re.compile(r"::(?:WorkerLoop|PooledThreadFunc|ThreadFn)\(")


class Part(NamedTuple):
    start: int
    data: bytes


class Call(NamedTuple):
    """A call under way and the lowest address of its part of the stack; the next one outward begins where it ends."""

    start: int
    frame: Frame


class LiveStack:
    def __init__(
        self, thread: int, registers: Mapping[str, int], frames: Sequence[Frame], parts: Sequence[Part]
    ) -> None:
        self.thread = thread
        self.pointer = registers["rsp"]
        self.end = parts[-1].start + len(parts[-1].data)
        self._registers = registers
        self._parts = parts
        native = [frame for frame in frames if frame.kind == "native" and frame.address is not None]
        self.is_unwound = any(not frame.approximate for frame in native[1:])
        self.calls = self._place(native)  # innermost first
        self._starts = [call.start for call in self.calls]
        # Behind the outermost call that is known come the interpreter's, and the environment of the process.
        known_end = self.calls[-1].start + OUTERMOST if self.is_unwound else self.end
        self.words = Counter(self._words_before(known_end))  # in the registers and on the stack

    def holds(self, address: int) -> bool:
        return self.pointer <= address < self.end

    def call_of(self, address: int) -> int:
        """The number of the call, counted from the innermost, whose part of the stack holds `address`."""
        return bisect_right(self._starts, address) - 1

    def calls_inside(self, address: int) -> Sequence[Call]:
        """The calls that the call made whose part of the stack holds `address`, innermost first."""
        start = self._starts[self.call_of(address)] if self.calls else 0
        return self.calls[: bisect_left(self._starts, start)]

    def place_of(self, word: int) -> int:
        """Where a word stands nearest to the innermost end; registers count as standing there."""
        if any(self._registers.get(name) == word for name in _REGISTERS):
            return self.pointer
        place = self._find(word, self.pointer)
        return self.end if place is None else place

    def words_of_work(self) -> set[int]:
        """Those of the calls that a thread of a pool makes for others, without the loop that waits for work."""
        loop = next((call.start for call in self.calls if _LOOP.search(call.frame.function)), None)
        return set(self._words_before(loop)) if loop is not None else set()

    def _words_before(self, end: int) -> Iterator[int]:
        """Those of the registers first, then from the innermost end of the stack on."""
        yield from (self._registers.get(name, 0) for name in _REGISTERS)
        for start, data in self._parts:
            size = max(0, min(len(data), (end - start) & -WORD))
            yield from struct.unpack(f"<{size // WORD}Q", data[:size])

    def _place(self, frames: Sequence[Frame]) -> list[Call]:
        """The return addresses stand on the stack in the order of the frames, each where a call's part begins."""
        calls: list[Call] = []
        position = self.pointer
        for index, frame in enumerate(frames):
            if index == 0:
                calls.append(Call(self.pointer, frame))
            elif frame.address == frames[index - 1].address:  # inlined into the one before
                calls.append(Call(calls[-1].start, frame))
            elif (slot := self._find(frame.address or 0, position)) is not None:
                position = slot + WORD
                calls.append(Call(position, frame))
        return calls

    def _find(self, word: int, position: int) -> int | None:
        wanted = struct.pack("<Q", word)
        for start, data in self._parts:
            index = data.find(wanted, max(0, position - start))
            while index % WORD and index >= 0:
                index = data.find(wanted, index + 1)
            if index >= 0:
                return start + index
        return None


def read_stack(pages: Pages, thread: int, registers: Mapping[str, int], frames: Sequence[Frame]) -> LiveStack | None:
    """None where the stack pointer points nowhere."""
    mapping = pages.mapping_near(registers["rsp"], GUARD)
    if mapping is None or mapping.permissions[1] != "w":
        return None
    start = max(registers["rsp"] & -WORD, mapping.start)
    parts = [_part(pages, start, min(mapping.end, start + INNER_BYTES))]
    if mapping.end - start > INNER_BYTES:
        parts.append(_part(pages, max(mapping.end - OUTER_BYTES, start + INNER_BYTES), mapping.end))
    return LiveStack(thread, registers, frames, parts)


def words_beyond(pages: Pages, pointer: int) -> set[int]:
    """What calls that have ended left on a stack, beyond the part that is in use."""
    end = pointer & -WORD
    mapping = pages.mapping(end)
    data = _part(pages, max(mapping.start, end - BEYOND), end).data if mapping else b""
    return set(struct.unpack(f"<{len(data) // WORD}Q", data))


def _part(pages: Pages, start: int, end: int) -> Part:
    data = pages.read_bulk(start, end - start)
    return Part(start, data[: len(data) & -WORD])
