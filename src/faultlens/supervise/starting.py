"""Starts a program, and all that watches over it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from faultlens.inspection.output_tail import OutputTail
from faultlens.records.crash import CgroupState, Crash
from faultlens.supervise.backends import backend_of
from faultlens.supervise.backends.base import Backend, Started
from faultlens.supervise.deaths import Deaths
from faultlens.supervise.live_watch import LiveWatch
from faultlens.supervise.options import Options
from faultlens.supervise.relay import SignalRelay
from faultlens.system.cgroup import Cgroup, cgroup_of

if TYPE_CHECKING:
    from faultlens.guard_alloc.hunting import Hunting
    from faultlens.supervise.time_limit import TimeLimit


class Run(NamedTuple):
    """A program that runs, and who watches over it."""

    program: Started
    backend: Backend
    output: OutputTail
    deaths: Deaths
    watch: LiveWatch
    limit: TimeLimit | None
    hunting: Hunting | None
    cgroup: Cgroup | None
    cgroup_before: CgroupState | None
    relay: SignalRelay

    def keep_deaths(self) -> None:
        for crash in self.backend.deaths(self.relay.expendable):
            self.deaths.keep(crash)

    def end_helpers(self) -> None:
        self.backend.close()
        self.relay.end()


def start(
    command: Sequence[str],
    options: Options,
    mask: Iterable[signal.Signals | int],
    on_child_crash: Callable[[Crash], None],
    tell: Callable[[str], None],
) -> Run:
    """`mask`: the signals that the program is to begin with blocked; here all of them are."""
    hunting = _hunting(options)
    backend = backend_of(options, hunting.table if hunting else None)
    cgroup = cgroup_of()
    cgroup_before = cgroup.state() if cgroup else None
    output = OutputTail(backend.area)
    environment = {**os.environ, **(options.variables or {})}
    program = backend.start(command, hunting.environment(environment) if hunting else environment, mask)
    deaths = Deaths(program, backend, output, on_child_crash)
    return Run(
        program=program,
        backend=backend,
        output=output,
        deaths=deaths,
        watch=LiveWatch(program, backend, cgroup, options, tell),
        limit=_time_limit(options.timeout, program.pid, backend, output, deaths),
        hunting=hunting,
        cgroup=cgroup,
        cgroup_before=cgroup_before,
        relay=SignalRelay(program.pid),  # last: the program comes first where few processes are allowed
    )


def _hunting(options: Options) -> Hunting | None:
    if options.hunt is None:
        return None
    from faultlens.guard_alloc.hunting import Hunting

    return Hunting(options.hunt, options.follow_children)


def _time_limit(
    seconds: float | None, pid: int, backend: Backend, output: OutputTail, deaths: Deaths
) -> TimeLimit | None:
    if seconds is None:
        return None
    from faultlens.supervise.time_limit import TimeLimit

    return TimeLimit(seconds, pid, backend, output, deaths)
