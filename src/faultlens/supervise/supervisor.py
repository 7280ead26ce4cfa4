"""Runs a program, stays out of its way, and returns what is known of its end as a Crash.

One loop waits for signals: the program's end or stop (SIGCHLD), signals to hand on, and word from the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.guard_alloc.hunting import Hunting, Wish
from faultlens.inspection import process
from faultlens.inspection.death import Death, RawFault, place_of_death
from faultlens.inspection.endings import outcome_of
from faultlens.inspection.output_tail import OutputTail
from faultlens.inspection.progress import Loop, read_loop
from faultlens.inspection.siginfo import signal_name
from faultlens.records.crash import CaptureMethod, Crash, Outcome
from faultlens.supervise.activity import LastMoments
from faultlens.supervise.bystander import Bystander, Sent
from faultlens.supervise.gpu_memory import gpu_memory_of
from faultlens.supervise.heap_snapshots import Looks
from faultlens.supervise.last_lines import LastLinesWatch
from faultlens.supervise.leaks import Leaks
from faultlens.supervise.memory_watch import Watch
from faultlens.supervise.near_limit import NearLimit, held_at
from faultlens.supervise.oom_stop import StopAt
from faultlens.supervise.sources import own_source, with_sources
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import cgroup_of
from faultlens.system.kernel_log import kernel_log_lines

if TYPE_CHECKING:
    from faultlens.inspection.freeze import Freeze
    from faultlens.supervise.tracer import Tracer

LOOK_SECONDS = 25.0
LOOK_MEMORY = 4 << 30
TERMINATE_GRACE_S = 5.0
HANDLED_FAULT_IS_RECENT_S = 2.0
MAX_CHILDREN_LOOKED_AT = 8
MAX_CHILDREN_KEPT = 50
WALL = 0x40000000  # __WALL of waitpid: threads too

NUDGE = signal.SIGRTMIN + 3  # from the thread that listens to the agent
POLL_S = 0.05  # where no thread may listen
JOB_CONTROL_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
SI_KERNEL = 0x80  # of the terminal's: they reach the whole process group, and so the program, by themselves
HANGUP = {signal.SIGHUP, signal.SIGCONT}  # but for these, of which only the leader of the session is told


class Options(NamedTuple):
    capture: Literal["agent", "tracer", "status"] = "agent"
    timeout: float | None = None
    follow_children: bool = True
    redact: bool = True
    contents: bool = True  # of tensors may be kept
    stop_at: StopAt | None = None  # how much memory may be used before the program is asked to end
    hunt: Wish | None = None  # how the program's blocks are fenced
    variables: Mapping[str, str] | None = None  # for the program alone


class Ending(NamedTuple):
    status: int  # as wait(2) gives it
    crash: Crash


def supervise(
    command: Sequence[str],
    options: Options,
    on_child_crash: Callable[[Crash], None],
    tell: Callable[[str], None] = lambda _: None,
) -> Ending:
    """Blocks until the program has ended. `on_child_crash` hears of crashes that the program survives, `tell` what the
    user should know while it runs."""
    return _Supervisor(options, on_child_crash, tell).run(command)


class _Stopped(NamedTuple):
    """When a process reported its death. Its other threads may go on for a moment, and leave further marks."""

    time: float
    progress: bytes


class _Look(NamedTuple):
    """What came of looking at a process."""

    death: Death
    method: CaptureMethod
    seen: Crash | None  # None: nothing, for these problems
    problems: Sequence[str]

    def crash(self) -> Crash:
        """To be asked for when the process was let go: it may be short of memory, and so are we then."""
        if self.seen is not None:
            return replace(self.seen, gaps=(*self.seen.gaps, *self.problems))
        from faultlens.inspection import inspect

        return replace(inspect.outline(self.death, self.method), gaps=tuple(self.problems))


def _is_in_abort(crash: Crash | None) -> bool:
    thread = crash.crashed_thread if crash else None
    return thread is not None and any(frame.function == "abort" for frame in thread.frames)


def _prepare_to_look() -> None:
    """While the program starts: when it dies, there may be no memory left to import anything."""


def _inspect(
    death: Death,
    method: CaptureMethod,
    redact: bool,
    freeze: Freeze | None,
    with_stacks: bool,
    contents: bool,
    table: Path | None,
) -> Crash:
    """Imported only where it is used: until something dies, and while a dying process is held, we stay small."""
    from faultlens.inspection import inspect

    return inspect.inspect(death, method, redact, freeze, with_stacks, contents, table)


class _Supervisor:
    def __init__(self, options: Options, on_child_crash: Callable[[Crash], None], tell: Callable[[str], None]) -> None:
        self.options = options
        self.on_child_crash = on_child_crash
        self.tell = tell
        self.area = SharedArea() if options.capture == "agent" else None
        self.hunting = Hunting(options.hunt, options.follow_children) if options.hunt else None
        self.cgroup = cgroup_of()
        self.cgroup_before = self.cgroup.state() if self.cgroup else None
        self.output = OutputTail(self.area)
        self.main: Crash | None = None
        self.children: list[Crash] = []
        self.deaths: dict[object, int] = {}  # by their place: which of the children
        self.not_kept = 0  # children, of too many that died in different places
        self.stopped: dict[int, _Stopped] = {}  # by process id
        self.handed_on: list[str] = []
        self.signalled: set[int] = set()  # at the time limit
        self.last_moments = LastMoments(options.timeout, self._loop_of) if options.timeout is not None else None
        self.timed_out = False
        self.pid = 0
        self.tracer: Tracer | None = None
        self.bystander: Bystander | None = None
        self.is_polling = False
        self.has_failed = False  # to watch the program's memory

    def run(self, command: Sequence[str]) -> Ending:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._start(command, mask)
            status = self._watch()
        finally:
            self._end_helpers()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return Ending(status, self._account(status))

    # ---------------------------------------------------------------------------------------- the start

    def _start(self, command: Sequence[str], mask: set[signal.Signals | int]) -> None:
        environment = {**os.environ, **(self.options.variables or {})}
        attach: Callable[[int], None] | None = None
        if self.hunting is not None:
            environment = self.hunting.environment(environment)
        if self.area is not None:
            environment = launch.agent_environment(environment, self.area.path, self.options.follow_children)
        elif self.options.capture == "tracer":
            from faultlens.supervise.tracer import Tracer

            self.tracer = Tracer(self._traced_death, self.options.follow_children)
            attach = self.tracer.attach
        self.started = time.monotonic()
        self.started_at = time.time()
        self.pid = launch.start(command, environment, mask, attach)
        self.timeline = Timeline(self.pid, self.cgroup, self.options.redact, self._loop, gpu_memory_of(self.pid))
        self.watch = Watch(self.timeline, self._loop, self.options.stop_at, self.tell)
        self.looks = Looks(self.timeline, self.area)
        self.leaks = Leaks(self.timeline, self.looks, self._loop, self.tell, self.watch.take_over)
        self.near_limit = NearLimit(
            self.timeline, self.looks, self.options.stop_at, lambda: self.leaks.is_looking, self.tell
        )
        self.last_lines = LastLinesWatch(self.timeline, self.tell)
        _prepare_to_look()
        # Only now: the program comes first where few processes are allowed. A fork comes before a thread.
        with contextlib.suppress(OSError):
            self.bystander = Bystander()
        if self.area is not None:
            self.is_polling = not self.area.listen(self._nudge)

    def _nudge(self) -> None:
        """Called by the thread that listens."""
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, NUDGE)
        except OSError:  # too many signals are waiting
            self.is_polling = True

    def _end_helpers(self) -> None:
        """Before signals are let in again. Those that came until now were for the program, or the listener's: they
        would be the end of us."""
        if self.area is not None:
            self.area.stop_listening()
        if self.bystander is not None:
            self.bystander.end()
        while signal.sigtimedwait(signal.valid_signals(), 0):
            pass

    # ----------------------------------------------------------------------------------------- the loop

    def _watch(self) -> int:
        watched = signal.valid_signals()
        next_sample = 0.0
        kill_at: float | None = None
        while True:
            elapsed = time.monotonic() - self.started
            if not self.has_failed:
                try:
                    next_sample = self._observe(elapsed, next_sample)
                except Exception as error:  # the program goes on
                    self.has_failed = True
                    self.tell(f"its memory is no longer watched: {type(error).__name__}: {error}")
            moments = self.last_moments
            if moments is not None and elapsed >= moments.timeout and not self.timed_out:
                self._capture_at_timeout(moments)
                kill_at = elapsed + TERMINATE_GRACE_S
            elif moments is not None and elapsed >= moments.next_look and not self.timed_out:
                moments.look([self.pid, *process.descendants(self.pid)])
            if kill_at is not None and elapsed >= kill_at:
                self._kill_all()
                kill_at = None
            deadlines = [kill_at] if kill_at else []
            if not self.has_failed:
                deadlines += [next_sample, self.watch.next_look, self.leaks.next_look]
            if moments is not None and not self.timed_out:
                deadlines.append(moments.next_look)
            if self.is_polling:
                self._serve_agent()
                deadlines.append(elapsed + POLL_S)
            info = signal.sigtimedwait(watched, max(0.0, min(deadlines, default=elapsed + 60) - elapsed))
            if info is not None and (status := self._on_signal(info)) is not None:
                return status

    def _observe(self, elapsed: float, next_sample: float) -> float:
        """Returns when the next sample is due."""
        if elapsed >= next_sample:
            self.timeline.take(elapsed)
            self.near_limit.look(elapsed)
            self.last_lines.look(elapsed)
            next_sample = elapsed + self.timeline.interval(elapsed)
        if elapsed >= self.watch.next_look:
            self.watch.look(elapsed)
        if elapsed >= self.leaks.next_look:
            self.leaks.look(elapsed)
        return next_sample

    def _loop(self) -> Loop | None:
        return self._loop_of(self.pid)

    def _loop_of(self, pid: int) -> Loop | None:
        return read_loop(self.area.progress(pid)) if self.area is not None else None

    def _on_signal(self, info: signal.struct_siginfo) -> int | None:
        """Returns the program's wait status when it has ended."""
        if info.si_signo == NUDGE and info.si_pid == os.getpid():
            self._serve_agent()
        elif info.si_signo == signal.SIGCHLD:
            return self._reap()
        elif info.si_pid == os.getpid():
            pass  # SIGPIPE for what we wrote ourselves
        elif info.si_code != SI_KERNEL or info.si_signo in HANGUP:
            self._hand_on(info)
        return None

    def _hand_on(self, info: signal.struct_siginfo) -> None:
        sent = Sent(info.si_signo, info.si_pid)
        if self.bystander is not None and self.bystander.has_seen(sent):
            return
        if sent.number != signal.SIGCONT:
            self.handed_on.append(f"{signal_name(sent.number)} from process {sent.sender}")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, sent.number)

    def _reap(self) -> int | None:
        while True:
            try:
                if self.tracer:
                    pid, status = os.waitpid(-1, os.WNOHANG | WALL)
                else:
                    pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:  # nothing is known of how it ended
                return 0 if self.tracer is None else None
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._on_stop(pid, status)
            elif pid == self.pid:
                self._serve_agent()  # children that crashed at the same time
                return status

    def _on_stop(self, pid: int, status: int) -> None:
        """Ctrl-Z: the shell must see its job stopped, and the job is faultlens."""
        stopped_by: int | None = os.WSTOPSIG(status)
        if self.tracer:
            stopped_by = self.tracer.handle_stop(pid, status)
        if pid == self.pid and stopped_by in JOB_CONTROL_STOPS:
            os.kill(os.getpid(), signal.SIGSTOP)

    # ---------------------------------------------------------------------------------------- the looks

    def _serve_agent(self) -> None:
        area = self.area
        for slot in list(area.waiting()) if area else ():
            assert area is not None
            death = area.accept(slot)
            self._note_stop(death.pid)
            dies = True
            try:
                with self.bystander.offered() if self.bystander else contextlib.nullcontext():
                    look = self._look_at_ours(death, area)
                dies = not death.is_in_doubt or _is_in_abort(look.seen)
            finally:
                area.release(slot, dies)
            if dies:
                self._keep(look.crash())

    def _look_at_ours(self, death: Death, area: SharedArea) -> _Look:
        """A process in a namespace of its own calls itself by a number that is another's here."""
        from faultlens.inspection.numbering import death_of

        here = death if death.pid == self.pid else death_of(death, area.inode)
        if here is None:
            return _Look(death, "agent", None, ["it is in a namespace that cannot be looked into"])
        return self._look(here, "agent")

    def _note_stop(self, pid: int) -> None:
        if self.area is not None:
            self.stopped[pid] = _Stopped(time.time(), self.area.progress(pid))

    def _look(self, death: Death, method: CaptureMethod) -> _Look:
        from faultlens.system.isolated import run_isolated

        redact, contents = self.options.redact, self.options.contents
        table = self.hunting.table if self.hunting else None
        problems: list[str] = []
        for with_stacks in (True, False):  # what follows the stacks may stumble over a damaged one
            try:
                if self.tracer is not None:
                    with self.tracer.held(death.pid) as freeze:
                        crash = _inspect(death, method, redact, freeze, with_stacks, contents, table)
                    return _Look(death, method, crash, problems)
                arguments = death, method, redact, None, with_stacks, contents, table
                try:
                    crash = run_isolated(LOOK_SECONDS, LOOK_MEMORY, _inspect, *arguments)
                except BlockingIOError:  # no more processes allowed: the limit that may be the cause
                    crash = _inspect(*arguments)
                return _Look(death, method, crash, problems)
            except Exception as error:  # whatever it is: the program must be let go, and its death told
                problems.append(f"looking at {'the stacks' if with_stacks else 'the process'} failed: {error}")
        return _Look(death, method, None, problems)

    def _traced_death(self, death: Death, freeze: Freeze) -> None:
        from faultlens.inspection import inspect

        try:
            crash = inspect.inspect(
                death,
                "tracer",
                self.options.redact,
                freeze,
                contents=self.options.contents,
                fence_table=self.hunting.table if self.hunting else None,
            )
        except Exception as error:
            crash = inspect.outline(death, "tracer")
            crash = replace(crash, gaps=(f"looking at the process failed: {error}",))
        self._keep(crash)

    def _keep(self, crash: Crash) -> None:
        if crash.pid == self.pid:
            # An emulator dies after the program it runs: the first death is the one to explain.
            self.main = self.main or crash
            return
        place = place_of_death(crash)
        if place in self.deaths:  # a worker that is started again and again
            index = self.deaths[place]
            times = self.children[index].times + 1
            self.children[index] = known = replace(self.children[index], times=times, seconds=self._elapsed())
            self.on_child_crash(known)
            return
        if len(self.children) >= MAX_CHILDREN_KEPT:
            self.not_kept += 1
            return
        self.deaths[place] = len(self.children)
        crash = self._with_inside(replace(crash, output=self.output.read(crash.pid or 0), seconds=self._elapsed()))
        crash = with_sources(crash)
        self.children.append(crash)
        self.on_child_crash(crash)

    def _capture_at_timeout(self, moments: LastMoments) -> None:
        self.timed_out = True
        family = [self.pid, *process.descendants(self.pid)[:MAX_CHILDREN_LOOKED_AT]]
        for pid in family:
            self._note_stop(pid)
        moments.look(family)
        looks = [
            moments.told(self._look(Death(pid, self._endless(pid)), self.options.capture).crash()) for pid in family
        ]
        children = [
            replace(look, seconds=self._elapsed(), output=self.output.read(look.pid or 0)) for look in looks[1:]
        ]
        self.main = looks[0]
        self.children += [with_sources(self._with_inside(child)) for child in children]
        self.children += self._gone()
        self._signal_all(signal.SIGTERM)

    def _gone(self) -> list[Crash]:
        """Children that had failed before the time was up, without a word that we heard, and lie there as zombies."""
        known = {child.pid for child in self.children}
        gone = []
        for pid, status in process.ended_below(self.pid).items():
            output = self.output.read(pid)
            if status and pid not in known:
                outcome, parent = outcome_of(status, output.stderr), process.parent_pid(pid)
                gone.append(Crash(outcome=outcome, method="status", pid=pid, parent_pid=parent, output=output))
        return gone[:MAX_CHILDREN_LOOKED_AT]

    def _kill_all(self) -> None:
        self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        """The program first: a pool starts a new worker for each that is gone."""
        below = process.descendants(self.pid)
        for pid in [self.pid, *below]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        self.signalled |= {self.pid, *below}

    def _signal_orphans(self) -> None:
        """Those that were started while the others were being ended."""
        if self.area is None:
            return
        from faultlens.inspection.numbering import has_mapped

        for pid in process.all_of_session(os.getsid(0)) - self.signalled - {os.getpid()}:
            if has_mapped(pid, self.area.inode):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)

    # --------------------------------------------------------------------------------------- the account

    def _account(self, status: int) -> Crash:
        output = self.output.read(self.pid)
        outcome = outcome_of(status, output.stderr)
        if self.timed_out:
            outcome = Outcome(kind="timeout", signal=outcome.signal, exit_code=outcome.exit_code)
            self._signal_orphans()
        crash = self.main or self._from_status(outcome)
        self.looks.end()
        self._serve_agent()  # children that crashed right after it
        log = None
        if outcome.kind != "ok" or self.children:  # a GPU fault ends in an exception, and is logged
            pids = {self.pid, *(thread.id for thread in crash.threads)}
            pids |= {child.pid for child in self.children if child.pid}
            log = kernel_log_lines(pids, self.started_at)
        crash = replace(
            crash,
            outcome=outcome,
            time=time.time(),
            seconds=self._elapsed(),
            output=output,
            timeline=tuple(self.timeline.samples),
            growth=self.leaks.growth(outcome.kind != "ok"),
            held=held_at(self.looks.best, self.started),
            last_lines=self.last_lines.seen,
            stop_request=self.watch.request,
            memory=crash.memory or self.timeline.memory,
            limits=crash.limits or self.timeline.limits,
            cgroup_before=self.cgroup_before,
            cgroup=self.cgroup.state() if self.cgroup else None,
            kernel_log=log or (),
            handed_on=tuple(self.handed_on),
            children=tuple(self.children),
        )
        if self.not_kept:
            crash = replace(crash, gaps=(*crash.gaps, f"{self.not_kept} more processes died, which were not kept"))
        return with_sources(self._with_inside(crash))

    def _with_inside(self, crash: Crash) -> Crash:
        """With what code inside the program remembered until its end."""
        if self.area is None or crash.pid is None:
            return crash
        stopped = self.stopped.get(crash.pid) or _Stopped(time.time(), self.area.progress(crash.pid))
        from faultlens.inspection.progress import read_progress

        crash = replace(crash, progress=read_progress(stopped.progress, self.started_at, stopped.time))
        if crash.progress is not None:
            from faultlens.supervise.saves import with_saves

            crash = with_saves(crash)
        if not crash.kernels:
            return crash
        from faultlens.inspection.graph_lines import with_graph_lines

        return with_graph_lines(crash, self.area.notes(), lambda path: own_source(crash, path))

    def _elapsed(self) -> float:
        return round(time.monotonic() - self.started, 3)

    def _from_status(self, outcome: Outcome) -> Crash:
        """Nothing was seen from inside: killed without a word, or no crash at all."""
        crash = Crash(outcome=outcome, method="status", pid=self.pid, parent_pid=os.getpid())
        death = self._handled_fault() if self.area and outcome.kind != "ok" else None
        if death is not None and (outcome.exit_code or death.faults[0].endless):
            from faultlens.inspection import inspect

            crash = inspect.outline(death, "agent")
        if self.area and not self.area.attached:
            crash = replace(crash, gaps=("the agent could not be loaded into the program",))
        if self.timeline.program:
            crash = replace(crash, program=self.timeline.program)
        if self.hunting is not None:
            from faultlens.guard_alloc.blocks import hunt_after

            crash = replace(crash, hunt=hunt_after(self.hunting.table, self.pid))
        return crash

    def _endless(self, pid: int) -> tuple[RawFault, ...]:
        return self.area.endless_fault(pid, time.time() - HANDLED_FAULT_IS_RECENT_S) if self.area else ()

    def _handled_fault(self) -> Death | None:
        assert self.area is not None
        return self.area.handled_fault(self.pid, time.time() - HANDLED_FAULT_IS_RECENT_S)
