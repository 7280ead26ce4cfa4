"""Hears of deaths from the agent, a library that is preloaded into the program and shares memory with us."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.inspection.death import Death
from faultlens.inspection.numbering import death_of, has_mapped
from faultlens.inspection.progress import Loop, read_loop, read_progress
from faultlens.records.crash import Crash, Outcome
from faultlens.supervise.backends.base import Expendable, Started
from faultlens.supervise.backends.status import StatusBackend
from faultlens.supervise.examination import Examined, examine, look_isolated
from faultlens.supervise.options import Options
from faultlens.supervise.sources import own_source

HANDLED_FAULT_IS_RECENT_S = 2.0


class _Marked(NamedTuple):
    time: float
    progress: bytes


class AgentBackend(StatusBackend):
    def __init__(self, options: Options, guard_table: Path | None) -> None:
        super().__init__(options, guard_table)
        self._area = SharedArea()
        self._ends: dict[int, _Marked] = {}  # by process id

    @property
    def area(self) -> SharedArea:
        return self._area

    def start(self, command: Sequence[str], environment: Mapping[str, str], mask: Iterable[Signals | int]) -> Started:
        extended = launch.agent_environment(environment, self._area.path, self._options.follow_children)
        return super().start(command, extended, mask)

    def listen(self, notify: Callable[[], None]) -> bool:
        return self._area.listen(notify)

    def close(self) -> None:
        self._area.stop_listening()

    # --------------------------------------------------------------------------------------- deaths

    def deaths(self, expendable: Expendable) -> Iterator[Crash]:
        for slot in list(self._area.waiting()):
            death = self._area.accept(slot)
            self.mark_end(death.pid)
            dies = True
            try:
                with expendable():
                    examined = self._examined(death)
                dies = not death.is_in_doubt or _is_in_abort(examined.seen)
            finally:
                self._area.release(slot, dies)
            if dies:
                yield examined.crash()

    def _examined(self, death: Death) -> Examined:
        """A process in a namespace of its own calls itself by a number that is another's here."""
        here = death if death.pid == self._program.pid else death_of(death, self._area.inode)
        if here is None:
            return Examined(self._subject(death), None, ["it is in a namespace that cannot be looked into"])
        return examine(self._subject(here), look_isolated)

    def look(self, pid: int) -> Crash:
        death = Death(pid, self._area.endless_fault(pid, _recently()))
        return examine(self._subject(death), look_isolated).crash()

    def unseen(self, outcome: Outcome) -> Crash:
        crash = super().unseen(outcome)
        death = self._area.handled_fault(self._program.pid, _recently()) if outcome.kind != "ok" else None
        if death is not None and (outcome.exit_code or death.faults[0].endless):
            from faultlens.inspection import inspect

            crash = inspect.outline(death, "agent")
        if not self._area.attached:
            crash = replace(crash, gaps=("the agent could not be loaded into the program",))
        return crash

    def belongs_to_program(self, pid: int) -> bool:
        return has_mapped(pid, self._area.inode)

    # ----------------------------------------------------------------------- what is known from inside

    def loop_of(self, pid: int) -> Loop | None:
        return read_loop(self._area.progress(pid))

    def mark_end(self, pid: int) -> None:
        self._ends[pid] = _Marked(time.time(), self._area.progress(pid))

    def remembered(self, crash: Crash) -> Crash:
        if crash.pid is None:
            return crash
        end = self._ends.get(crash.pid) or _Marked(time.time(), self._area.progress(crash.pid))
        crash = replace(crash, progress=read_progress(end.progress, self._program.time, end.time))
        if crash.progress is not None:
            from faultlens.supervise.saves import with_saves

            crash = with_saves(crash)
        if not crash.kernels:
            return crash
        from faultlens.inspection.graph_lines import with_graph_lines

        return with_graph_lines(crash, self._area.notes(), lambda path: own_source(crash, path))


def _is_in_abort(crash: Crash | None) -> bool:
    thread = crash.crashed_thread if crash else None
    return thread is not None and any(frame.function == "abort" for frame in thread.frames)


def _recently() -> float:
    return time.time() - HANDLED_FAULT_IS_RECENT_S
