"""What the agent or the tracer saw of a dying process, before anybody looked at it from outside."""

from __future__ import annotations

from typing import NamedTuple


class RawFault(NamedTuple):
    """A fatal signal as the agent or the tracer saw it."""

    thread: int
    siginfo: bytes
    registers: dict[str, int]
    chained: bool = False


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
