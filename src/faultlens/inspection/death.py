"""What the agent or the tracer saw of a dying process, before anybody looked at it from outside."""

from __future__ import annotations

from typing import Literal, NamedTuple

from faultlens.inspection.frames import user_frame
from faultlens.records.crash import Crash


class RawFault(NamedTuple):
    """A fatal signal as the agent or the tracer saw it."""

    thread: int
    siginfo: bytes
    registers: dict[str, int]
    chained: bool = False
    endless: bool = False  # a handler of the program returns to it again and again

    @property
    def seen(self) -> Literal["direct", "chained", "endless"]:
        return "endless" if self.endless else "chained" if self.chained else "direct"


class RawThrow(NamedTuple):
    """A C++ exception as the agent saw it."""

    thread: int
    time: float
    type: str
    message: str
    frames: tuple[int, ...]


class ParkedThreads(NamedTuple):
    """Where the agent listed the threads that it made stand still (struct fl_parked)."""

    address: int
    number: int


NOBODY_PARKED = ParkedThreads(0, 0)


class Death(NamedTuple):
    """All that is known from inside about a dying process."""

    pid: int
    faults: tuple[RawFault, ...] = ()  # the first is the cause of death
    throws: tuple[RawThrow, ...] = ()
    parked: ParkedThreads = NOBODY_PARKED
    is_in_doubt: bool = False  # it dies only if it was abort() that raised the signal


def place_of_death(crash: Crash) -> object:
    """The same for processes that died in the same way: by the same signal, on the same line, in the same function."""
    thread, line = crash.crashed_thread, user_frame(crash)
    innermost = next(iter(thread.frames), None) if thread else None
    where = (innermost.library, innermost.offset) if innermost else None
    return crash.outcome.signal, (line.file, line.line) if line else None, where
