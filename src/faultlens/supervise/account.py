"""The account of a program that has ended: all that was seen of it becomes one Crash."""

from __future__ import annotations

import time

from msgspec.structs import replace

from faultlens.inspection.endings import outcome_of
from faultlens.records.crash import Crash, MachineState, Outcome
from faultlens.supervise.named_files import with_named_files
from faultlens.supervise.retained import retained_at
from faultlens.supervise.sources import with_sources
from faultlens.supervise.starting import Run
from faultlens.system.kernel_log import kernel_log_lines


def account(run: Run, status: int) -> Crash:
    """`status` as wait(2) gives it."""
    output = run.output.read(run.program.pid)
    outcome = outcome_of(status, output.stderr)
    if run.limit is not None and run.limit.is_reached:
        outcome = Outcome(kind="timeout", signal=outcome.signal, exit_code=outcome.exit_code)
        run.limit.end_orphans()
    crash = run.deaths.main or _unseen(run, outcome)
    run.watch.snapshots.end()
    run.keep_deaths()  # children that crashed right after it
    crash = replace(
        crash,
        outcome=outcome,
        time=time.time(),
        seconds=round(run.program.seconds, 3),
        output=output,
        kernel_log=_kernel_log(run, crash, outcome),
        handed_on=tuple(run.relay.handed_on),
        children=tuple(run.deaths.children),
    )
    if not_kept := run.deaths.not_kept:
        crash = replace(crash, gaps=(*crash.gaps, f"{not_kept} more processes died, which were not kept"))
    return with_named_files(with_sources(run.backend.remembered(_watched(run, crash))))


def _unseen(run: Run, outcome: Outcome) -> Crash:
    crash = run.backend.unseen(outcome)
    if run.watch.timeline.program:
        crash = replace(crash, program=run.watch.timeline.program)
    if run.hunting is not None:
        from faultlens.guard_alloc.blocks import hunt_after

        crash = replace(crash, hunt=hunt_after(run.hunting.table, run.program.pid))
    return crash


def _watched(run: Run, crash: Crash) -> Crash:
    """With what was seen while it lived."""
    watch = run.watch
    return replace(
        crash,
        timeline=tuple(watch.timeline.samples),
        growth=watch.leaks.growth(crash.outcome.kind != "ok"),
        held=retained_at(watch.snapshots.best, run.program.clock),
        last_lines=watch.last_lines.seen,
        stop_request=watch.memory.request,
        memory=crash.memory or watch.timeline.memory,
        limits=crash.limits or watch.timeline.limits,
        machine=crash.machine or _machine(crash),
        cgroup_before=run.cgroup_before,
        cgroup=run.cgroup.state() if run.cgroup else None,
    )


def _machine(crash: Crash) -> MachineState | None:
    """Exceptions tell what was asked for, not what there is."""
    if crash.outcome.kind == "ok":
        return None
    from faultlens.system.machine import machine_state  # until something fails, the supervisor stays small

    return machine_state()


def _kernel_log(run: Run, crash: Crash, outcome: Outcome) -> tuple[str, ...]:
    if outcome.kind == "ok" and not run.deaths.children:  # a GPU fault ends in an exception, and is logged
        return ()
    pids = {run.program.pid, *(thread.id for thread in crash.threads)}
    pids |= {child.pid for child in run.deaths.children if child.pid}
    return tuple(kernel_log_lines(pids, run.program.time) or ())
