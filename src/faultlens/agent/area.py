"""The supervisor's side of the shared memory: hears of crashes, reads what the agent left, lets go."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Callable, Iterator

from faultlens.agent import INSIDE, layout
from faultlens.inspection.death import Death, ParkedThreads, RawFault, RawThrow

ACCEPT_MS = 3_000
FINISH_MS = 60_000

SYS_FUTEX = 202
FUTEX_WAIT = 0
FUTEX_WAKE = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class SharedArea:
    """Made by the supervisor before the program starts. Has no name in any file system that could be full."""

    def __init__(self) -> None:
        self._notes = os.memfd_create("faultlens-notes", os.MFD_CLOEXEC)
        size = ctypes.sizeof(layout.Area)
        self.descriptor = os.memfd_create("faultlens", os.MFD_CLOEXEC)
        os.posix_fallocate(self.descriptor, 0, size)
        self._map = mmap.mmap(self.descriptor, size)
        self.area = layout.Area.from_buffer(self._map)
        self.area.version = layout.VERSION
        self.area.supervisor_pid = os.getpid()
        self.area.accept_ms = ACCEPT_MS
        self.area.finish_ms = FINISH_MS
        self.area.notes = f"/proc/{os.getpid()}/fd/{self._notes}".encode()
        folder = os.fsencode(INSIDE)
        if len(folder) < layout.INSIDE_PATH_BYTES:
            self.area.inside = folder
        self.area.magic = layout.MAGIC
        self._wake = ctypes.c_uint32.from_buffer(self.area, layout.Area.wake.offset)
        self._is_listening = True
        self._listener: threading.Thread | None = None

    def close(self) -> None:
        """Nobody can find it any more. Its memory goes with the last that has it mapped."""
        os.close(self._notes)
        os.close(self.descriptor)

    @property
    def inode(self) -> int:
        """By which its mappings are known."""
        return os.fstat(self.descriptor).st_ino

    @property
    def path(self) -> str:
        """Where the program finds it. Nothing is inherited: its table of open files stays as it was."""
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def notes(self) -> bytes:
        """What code inside Python programs wrote down of their graphs."""
        return os.pread(self._notes, os.fstat(self._notes).st_size, 0)

    def notes_size(self) -> int:
        return os.fstat(self._notes).st_size

    def notes_since(self, position: int) -> bytes:
        return os.pread(self._notes, max(os.fstat(self._notes).st_size - position, 0), position)

    def ask_for_snapshot(self, pid: int) -> None:
        """The process says in its notes what its memory is used for, as soon as it comes by. 0: no longer."""
        self.area.look_at = pid

    def progress(self, pid: int) -> bytes:
        """The page on which a process left its progress."""
        return next((bytes(page) for page in self.area.progress if page.pid == pid), b"")

    @property
    def attached(self) -> bool:
        """Has any process loaded the agent?"""
        return bool(self.area.attached)

    def listen(self, notify: Callable[[], None]) -> bool:
        """Call `notify` from a thread of its own whenever a process reports a crash. False: there may be no thread."""
        self._listener = threading.Thread(target=self._listen, args=(notify,), name="faultlens-listen", daemon=True)
        try:
            self._listener.start()
        except RuntimeError:
            self._listener = None
        return self._listener is not None

    def stop_listening(self) -> None:
        """From here on `notify` is not called any more."""
        if self._listener is not None:
            self._is_listening = False
            self.area.wake += 1
            _futex(self._wake, FUTEX_WAKE, 2**31 - 1)
            self._listener.join()
            self._listener = None

    def _listen(self, notify: Callable[[], None]) -> None:
        seen = 0
        while self._is_listening:
            current = self._wake.value
            if current != seen:
                seen = current
                notify()
            else:
                _futex(self._wake, FUTEX_WAIT, seen)

    def waiting(self) -> Iterator[layout.Slot]:
        """Slots of crashed processes that nobody looks at yet."""
        return (slot for slot in self.area.slots if slot.state == layout.WAITING)

    def accept(self, slot: layout.Slot) -> Death:
        """Take note of a crash; its process waits until it is released."""
        slot.state = layout.ACCEPTED
        faults = [slot.fault, *slot.also[: min(slot.also_count, layout.ALSO)]]
        throws = slot.exceptions[: min(slot.exception_count, layout.EXCEPTIONS)]
        parked = ParkedThreads(slot.parked, slot.parked_count)
        is_in_doubt = bool(slot.is_in_doubt)
        return Death(
            slot.fault.pid, tuple(map(_raw_fault, faults)), tuple(map(_raw_throw, throws)), parked, is_in_doubt
        )

    def release(self, slot: layout.Slot, dies: bool = True) -> None:
        """Let the process die, or live on where that was in doubt."""
        slot.state = layout.FREE if dies else layout.SPARED
        _futex(ctypes.c_uint32.from_buffer(slot, 0), FUTEX_WAKE, 2**31 - 1)

    def handled_fault(self, pid: int, since: float) -> Death | None:
        """The fault, not older than `since`, that a handler of this process took and did not return from."""
        handled = self.area.handled[pid % layout.HANDLED]
        if not handled.active or handled.fault.pid != pid or handled.fault.time_ns / 1e9 < since:
            return None
        return Death(pid, (_raw_fault(handled.fault),))

    def endless_fault(self, pid: int, since: float) -> tuple[RawFault, ...]:
        """The fault that this process has not got past, as long as it lives; at most one."""
        death = self.handled_fault(pid, since)
        return death.faults if death and death.faults[0].endless else ()

    def output_tail(self, pid: int | None, descriptor: int) -> str:
        """The last of what a process (None: any) wrote, as far as the ring reaches back."""
        chunks = [
            data
            for header, data in _records(bytes(self.area.output), self.area.output_head)
            if header.descriptor == descriptor and pid in (None, header.pid)
        ]
        return b"".join(chunks).decode("utf-8", "backslashreplace")


def _raw_fault(fault: layout.Fault) -> RawFault:
    registers = dict(zip(layout.GREGS, fault.gregs, strict=True))
    return RawFault(fault.tid, bytes(fault.siginfo), registers, fault.chained == 1, fault.chained == 2)


def _raw_throw(throw: layout.CppThrow) -> RawThrow:
    return RawThrow(
        throw.tid,
        throw.time_ns / 1e9,
        throw.type.decode("utf-8", "backslashreplace"),
        throw.message.decode("utf-8", "backslashreplace"),
        tuple(throw.frames[: min(throw.frame_count, layout.THROW_FRAMES)]),
    )


def _records(ring: bytes, head: int) -> Iterator[tuple[layout.OutputHeader, bytes]]:
    """The whole records of the ring, oldest first; the write position may have cut the oldest."""
    size = len(ring)
    start = head % size
    straight = ring[start:] + ring[:start] if head > size else ring[:head]
    header_size = ctypes.sizeof(layout.OutputHeader)
    position = 0
    while position + header_size <= len(straight):
        header = layout.OutputHeader.from_buffer_copy(straight, position)
        end = position + header_size + header.size
        if header.magic != layout.OUTPUT_MAGIC or end > len(straight):
            position += 8  # inside a record whose beginning was overwritten
            continue
        yield header, straight[position + header_size : end]
        position = (end + 7) & ~7


def _futex(word: ctypes.c_uint32, operation: int, value: int) -> None:
    _libc.syscall(
        ctypes.c_long(SYS_FUTEX), ctypes.byref(word), ctypes.c_long(operation), ctypes.c_long(value), None, None, 0
    )
