"""Sees nothing but the exit status. The other backends see more, and answer as this one where they do not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.inspection.death import Death
from faultlens.inspection.progress import Loop
from faultlens.inspection.subject import Subject
from faultlens.records.crash import Crash, Outcome
from faultlens.supervise.backends.base import Expendable, Started
from faultlens.supervise.examination import examine, look_isolated
from faultlens.supervise.options import Options


class StatusBackend:
    def __init__(self, options: Options, guard_table: Path | None) -> None:
        self._options = options
        self._guard_table = guard_table
        self._program = Started(0, 0.0, 0.0)  # not yet

    @property
    def area(self) -> SharedArea | None:
        return None

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], mask: Iterable[signal.Signals | int]
    ) -> Started:
        clock, now = time.monotonic(), time.time()
        self._program = Started(launch.start(command, environment, mask, self._attach), clock, now)
        return self._program

    def _attach(self, pid: int) -> None:
        """Before the program begins."""

    def listen(self, notify: Callable[[], None]) -> bool:  # noqa: ARG002
        return True

    def statuses(self) -> Iterator[int]:
        while True:
            try:
                pid, status = os.waitpid(self._program.pid, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:  # nothing is known of how it ended
                yield 0
                return
            if pid == 0:
                return
            yield status

    def deaths(self, expendable: Expendable) -> Iterator[Crash]:  # noqa: ARG002
        return iter(())

    def mark_end(self, pid: int) -> None:
        pass

    def look(self, pid: int) -> Crash:
        return examine(self._subject(Death(pid)), look_isolated).crash()

    def _subject(self, death: Death) -> Subject:
        options = self._options
        return Subject(
            death,
            options.capture,
            guard_table=self._guard_table,
            redact=options.redact,
            contents=options.contents,
        )

    def loop_of(self, pid: int) -> Loop | None:  # noqa: ARG002
        return None

    def belongs_to_program(self, pid: int) -> bool:  # noqa: ARG002
        return False

    def unseen(self, outcome: Outcome) -> Crash:
        return Crash(outcome=outcome, method="status", pid=self._program.pid, parent_pid=os.getpid())

    def remembered(self, crash: Crash) -> Crash:
        return crash

    def close(self) -> None:
        pass
