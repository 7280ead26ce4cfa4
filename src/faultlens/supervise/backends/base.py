"""What every backend offers: the supervisor does not ask which one it is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from faultlens.agent.area import SharedArea
    from faultlens.inspection.progress import Loop
    from faultlens.records.crash import Crash, Outcome

Expendable = Callable[[], AbstractContextManager[None]]


class Started(NamedTuple):
    """The program, and when it was started."""

    pid: int
    clock: float  # of time.monotonic()
    time: float  # in seconds since 1970

    @property
    def seconds(self) -> float:
        """Since then."""
        return time.monotonic() - self.clock


class Backend(Protocol):
    @property
    def area(self) -> SharedArea | None:
        """The memory that code inside the program shares with us, if there is such code."""

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], mask: Iterable[signal.Signals | int]
    ) -> Started: ...

    def listen(self, notify: Callable[[], None]) -> bool:
        """Another thread calls `notify` when there are `deaths`. False: they must be asked for now and then."""

    def statuses(self) -> Iterator[int]:
        """What wait(2) tells of the program by now: that job control has stopped it, and in the end how it ended."""

    def deaths(self, expendable: Expendable) -> Iterator[Crash]:
        """Processes that die: each is looked at, let go, and then handed over. What is `expendable` during a look the
        kernel takes if memory runs out."""

    def mark_end(self, pid: int) -> None:
        """What a process remembers from here on does not count: its other threads go on for a moment."""

    def look(self, pid: int) -> Crash:
        """At a process that does not die: its time is up."""

    def loop_of(self, pid: int) -> Loop | None:
        """How far a process has come, if that is known."""

    def belongs_to_program(self, pid: int) -> bool:
        """Whether a process comes from the program, wherever it stands now; False where that is not known."""

    def unseen(self, outcome: Outcome) -> Crash:
        """Of the program, where its death was not handed over: killed without a word, or no death at all."""

    def remembered(self, crash: Crash) -> Crash:
        """With what code inside the process remembered until its end."""

    def close(self) -> None:
        """From here on nobody is notified."""
