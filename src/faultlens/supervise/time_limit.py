"""The end of a program whose time is up: all its processes are looked at, asked to end, and killed if they do not."""

from __future__ import annotations

import contextlib
import math
import os
import signal

from faultlens.inspection import process
from faultlens.inspection.endings import outcome_of
from faultlens.inspection.output_tail import OutputTail
from faultlens.records.crash import Crash
from faultlens.supervise.activity import LastMoments
from faultlens.supervise.backends.base import Backend
from faultlens.supervise.deaths import Deaths

TERMINATE_GRACE_S = 5.0
MAX_CHILDREN_LOOKED_AT = 8


class TimeLimit:
    def __init__(self, seconds: float, pid: int, backend: Backend, output: OutputTail, deaths: Deaths) -> None:
        self.is_reached = False
        self._pid = pid
        self._backend = backend
        self._output = output
        self._deaths = deaths
        self._moments = LastMoments(seconds, backend.loop_of)
        self._kill_at = math.inf
        self._signalled: set[int] = set()

    @property
    def next_look(self) -> float:
        return self._kill_at if self.is_reached else self._moments.next_look

    def look(self, elapsed: float) -> None:
        if self.is_reached:
            if elapsed >= self._kill_at:
                self._signal_all(signal.SIGKILL)
                self._kill_at = math.inf
        elif elapsed >= self._moments.timeout:
            self.is_reached = True
            self._capture()
            self._signal_all(signal.SIGTERM)
            self._kill_at = elapsed + TERMINATE_GRACE_S
        elif elapsed >= self._moments.next_look:
            self._moments.look([self._pid, *process.descendants(self._pid)])

    def end_orphans(self) -> None:
        """Those that were started while the others were being ended."""
        for pid in process.all_of_session(os.getsid(0)) - self._signalled - {os.getpid()}:
            if self._backend.belongs_to_program(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)

    def _capture(self) -> None:
        family = [self._pid, *process.descendants(self._pid)[:MAX_CHILDREN_LOOKED_AT]]
        for pid in family:
            self._backend.mark_end(pid)
        self._moments.look(family)
        program, *children = [self._moments.told(self._backend.look(pid)) for pid in family]
        self._deaths.main = program
        self._deaths.children += [self._deaths.completed(child) for child in children]
        self._deaths.children += self._gone()

    def _gone(self) -> list[Crash]:
        """Children that had failed before the time was up, without a word that we heard, and lie there as zombies."""
        known = {child.pid for child in self._deaths.children}
        gone = []
        for pid, status in process.ended_below(self._pid).items():
            output = self._output.read(pid)
            if status and pid not in known:
                outcome, parent = outcome_of(status, output.stderr), process.parent_pid(pid)
                gone.append(Crash(outcome=outcome, method="status", pid=pid, parent_pid=parent, output=output))
        return gone[:MAX_CHILDREN_LOOKED_AT]

    def _signal_all(self, number: signal.Signals) -> None:
        """The program first: a pool starts a new worker for each that is gone."""
        below = process.descendants(self._pid)
        for pid in [self._pid, *below]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        self._signalled |= {self._pid, *below}
