"""Which guarded block an address belongs to, and what was done to it.

The table was written by a program that damages memory, perhaps this as well: nothing in it is believed unchecked."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from faultlens.guard_alloc import layout

Kind = Literal["double free", "invalid free", "overflow", "underflow"]

_KINDS: dict[int, Kind] = {
    layout.DOUBLE_FREE: "double free",
    layout.INVALID_FREE: "invalid free",
    layout.OVERFLOW: "overflow",
    layout.UNDERFLOW: "underflow",
}
_MAX_PAGES = 1 << 16  # of a slot
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


class Allocation(NamedTuple):
    """A guarded block, as seen from an address."""

    start: int
    size: int
    state: Literal["live", "freed"]
    offset: int  # of the address, counted from the beginning of the block
    made: tuple[int, ...]  # return addresses, innermost first
    made_by: int  # thread
    made_at: float
    freed: tuple[int, ...] = ()
    freed_by: int | None = None
    freed_at: float | None = None


class Found(NamedTuple):
    """What the guarding allocator noticed by itself: at free(), or when the program ended."""

    kind: Kind
    address: int  # that was freed, or the byte nearest to the block that was overwritten
    thread: int
    frames: tuple[int, ...]
    at_exit: bool
    block: Allocation | None
    libraries: tuple[tuple[int, int, str], ...] = ()  # start, end and path, where the process is gone


class State(NamedTuple):
    """How a process was guarded."""

    pid: int
    every: int  # one of so many allocations; 0: none
    aligned_every: int
    guarded: int  # allocations, ever
    passed: int  # chosen, but without room
    problem: str | None  # why nothing was guarded


def read(table: Path, address: int, pid: int | None = None) -> Allocation | None:
    """The block that this address is in, or nearest to; None where it is far from all of them.

    Of a process that has no part of its own (a forked child that allocated nothing) its parent's is taken."""
    has_own = pid is not None and state(table, pid) is not None
    return next((block for part in _parts(table, pid, has_own) if (block := part.block(address))), None)


def found(table: Path, pid: int | None = None) -> Found | None:
    return next((error for part in _parts(table, pid, strictly=True) if (error := part.error())), None)


def state(table: Path, pid: int) -> State | None:
    return next((part.state() for part in _parts(table, pid, strictly=True)), None)


def live_blocks(table: Path, pid: int) -> Iterator[Allocation]:
    for part in _parts(table, pid, strictly=True):
        yield from part.live()


class _Part:
    """What one process left."""

    def __init__(self, descriptor: int, file: layout.File, offset: int, head: layout.Part) -> None:
        self._descriptor = descriptor
        self._file = file
        self._slots = offset + layout.PAGE
        self._count = (file.part_bytes - layout.PAGE) // ctypes.sizeof(layout.Slot)
        self.head = head

    def block(self, address: int) -> Allocation | None:
        """Between two blocks the nearer one is meant; not one that is freed, while the other lives."""
        head = self.head
        if not (head.active and 0 <= address - head.arena < head.arena_bytes):
            return None
        size_class = max(
            (each for each in head.classes if each.slots and each.start <= address),
            key=lambda each: each.start,
            default=None,
        )
        if size_class is None or not 0 < size_class.slot_pages <= _MAX_PAGES:
            return None
        index = (address - size_class.start) // ((size_class.slot_pages + 1) * layout.PAGE)
        # A slot begins with the guard page that the one before ends at.
        near = [self._slot(size_class.first + each) for each in (index, index - 1) if 0 <= each < size_class.slots]
        blocks = [_allocation(slot, address) for slot in near if slot is not None and slot.state]
        return min(blocks, key=_distance, default=None)

    def error(self) -> Found | None:
        error = self.head.error
        kind = _KINDS.get(error.kind)
        if kind is None:
            return None
        block = self.block(error.start or error.address)
        if block is not None:
            block = block._replace(offset=error.address - block.start)
        frames = tuple(error.frames[: min(error.frame_count, layout.FRAMES)])
        libraries = tuple(
            (each.start, each.end, os.fsdecode(each.path)) for each in self.head.libraries if each.start < each.end
        )
        return Found(kind, error.address, error.thread, frames, bool(error.at_exit), block, libraries)

    def state(self) -> State:
        head, file = self.head, self._file
        problem = None if head.active else head.problem.decode("utf-8", "replace") or "it did not start"
        return State(head.pid, file.every, file.aligned_every, head.fenced, head.passed, problem)

    def live(self) -> Iterator[Allocation]:
        for number in range(self._count):
            slot = self._slot(number)
            if slot is not None and slot.state == layout.LIVE:
                yield _allocation(slot, slot.start)

    def _slot(self, number: int) -> layout.Slot | None:
        if not 0 <= number < self._count:
            return None
        return _read(self._descriptor, self._slots + number * ctypes.sizeof(layout.Slot), layout.Slot)


def _parts(table: Path, pid: int | None, strictly: bool = False) -> Iterator[_Part]:
    """The parts of all processes, that of `pid` first, then the youngest first."""
    try:
        descriptor = os.open(table, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        file = _read(descriptor, 0, layout.File)
        if file is None or file.magic != layout.MAGIC or file.version != layout.VERSION:
            return
        claims = sorted(
            ((claim.pid != pid, -claim.order, number) for number, claim in enumerate(file.parts) if claim.pid),
        )
        for other, _, number in claims:
            offset = layout.PAGE + number * file.part_bytes
            head = _read(descriptor, offset, layout.Part)
            if head is not None and not (strictly and pid is not None and other):
                yield _Part(descriptor, file, offset, head)
    finally:
        os.close(descriptor)


def _read(descriptor: int, offset: int, kind: type[_Struct]) -> _Struct | None:
    try:
        data = os.pread(descriptor, ctypes.sizeof(kind), offset)
    except (OSError, OverflowError):
        return None
    return kind.from_buffer_copy(data) if len(data) == ctypes.sizeof(kind) else None


def _allocation(slot: layout.Slot, address: int) -> Allocation:
    freed = slot.state == layout.FREED
    return Allocation(
        start=slot.start,
        size=slot.size,
        state="freed" if freed else "live",
        offset=address - slot.start,
        made=tuple(slot.made[: min(slot.made_frames, layout.FRAMES)]),
        made_by=slot.made_by,
        made_at=slot.made_ns / 1e9,
        freed=tuple(slot.freed[: min(slot.freed_frames, layout.FRAMES)]) if freed else (),
        freed_by=slot.freed_by if freed else None,
        freed_at=slot.freed_ns / 1e9 if freed else None,
    )


def _distance(block: Allocation) -> tuple[bool, bool, int]:
    outside = max(-block.offset, block.offset - block.size + 1, 0)
    return outside > 0, block.state == "freed", outside
