"""Runs a program, stays out of its way, and returns what is known of its end as a Crash.

One loop waits for signals: the program's end or stop (SIGCHLD), signals to hand on, and word of a death."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from faultlens.records.crash import Crash
from faultlens.supervise.account import account
from faultlens.supervise.options import Options
from faultlens.supervise.starting import Run, start

__all__ = ["Ending", "Options", "supervise"]

NUDGE = signal.SIGRTMIN + 3  # from the thread that listens for deaths
POLL_S = 0.05  # where no thread may listen
IDLE_S = 60.0
JOB_CONTROL_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


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
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    run: Run | None = None
    try:
        run = start(command, options, mask, on_child_crash, tell)
        status = _Waiting(run).until_end()
    finally:
        if run is not None:
            run.end_helpers()
        # Those that came until now were for the program, or the listener's: let in, they would be the end of us.
        while signal.sigtimedwait(signal.valid_signals(), 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Ending(status, account(run, status))


class _Waiting:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._is_polling = not run.backend.listen(self._nudge)

    def until_end(self) -> int:
        """Returns the program's wait status."""
        run, watched = self._run, signal.valid_signals()
        while True:
            elapsed = run.program.seconds
            run.watch.look(elapsed)
            if run.limit is not None:
                run.limit.look(elapsed)
            if self._is_polling:
                run.keep_deaths()
            info = signal.sigtimedwait(watched, max(0.0, self._next_look(elapsed) - elapsed))
            if info is not None and (status := self._on_signal(info)) is not None:
                return status

    def _next_look(self, elapsed: float) -> float:
        run = self._run
        looks = [run.watch.next_look, elapsed + (POLL_S if self._is_polling else IDLE_S)]
        return min([*looks, run.limit.next_look] if run.limit is not None else looks)

    def _nudge(self) -> None:
        """Called by the thread that listens."""
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, NUDGE)
        except OSError:  # too many signals are waiting
            self._is_polling = True

    def _on_signal(self, info: signal.struct_siginfo) -> int | None:
        """Returns the program's wait status when it has ended."""
        if info.si_signo == NUDGE and info.si_pid == os.getpid():
            self._run.keep_deaths()
        elif info.si_signo == signal.SIGCHLD:
            return self._on_child()
        elif info.si_pid != os.getpid():  # else SIGPIPE for what we wrote ourselves
            self._run.relay.hand_on(info)
        return None

    def _has_ended(self) -> bool:
        """And is not buried yet: of the dead, the limits can still be read."""
        try:
            return os.waitid(os.P_PID, self._run.program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def _on_child(self) -> int | None:
        ended: int | None = None
        if self._has_ended():
            self._run.watch.timeline.take_last_limits()
        for status in self._run.backend.statuses():
            if not os.WIFSTOPPED(status):
                ended = status
                break
            if os.WSTOPSIG(status) in JOB_CONTROL_STOPS:
                # Ctrl-Z: the shell must see its job stopped, and the job is faultlens.
                os.kill(os.getpid(), signal.SIGSTOP)
        self._run.keep_deaths()  # also those of children that crashed at the same time
        return ended
