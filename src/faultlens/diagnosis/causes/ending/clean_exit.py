from __future__ import annotations

import signal

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.limits import gave_up, oom_kills
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.diagnosis.evidence.storage import lost_output
from faultlens.records.crash import Crash


class CleanExit(Cause):
    """
    ## What it is
    The program ended by itself and chose its exit code (`sys.exit(n)`, `os._exit(n)`, `exit` in a script). Shells
    show a process that was killed by signal N as exit code 128 + N, so codes such as 139 (128 + SIGSEGV) or 137
    look like a crash, but any program may return these numbers.

    ## How it looks
    An exit code other than 0, no signal, no traceback at the end of stderr.

    ## How to prove it
    The wait status: `WIFEXITED` holds and `WIFSIGNALED` does not. A core file or a line in the kernel log would
    contradict it; there is none.

    ## How to fix it
    Look for the place that sets the exit code. A launcher that passes on the status of a worker it started
    (`sys.exit(128 + sig)`) means that the worker died: run the worker itself under `faultlens run`.
    """

    slug = "clean-exit"
    code = "FL102"
    headline = "The program ended by itself with an exit code"

    def examine(self, case: Case) -> Finding | None:
        outcome = case.crash.outcome
        if outcome.kind != "exit" or case.fault is not None or ended_by(case):
            return None
        looks_like, place = _signal_for(outcome.exit_code or 0), _only_exit(case.crash)
        return Finding(
            # A launcher that lost a worker passes its status on; a handler of SIGTERM has a status of its own.
            strength=POSSIBLE
            if gave_up(case) or lost_output(case)
            else LIKELY
            if oom_kills(case.crash) or case.crash.stop_request
            else PROVEN,
            title=f"the program ended by itself with exit code {outcome.exit_code}"
            + (f"; this is not a {looks_like}" if looks_like else ""),
            evidence=evidence(
                (f"it exited with code {outcome.exit_code}: no signal ended it", "wait status"),
                ("no fatal signal was seen in the program or its children", "agent")
                if _were_watched(case.crash)
                else None,
                (f"it had been sent {', '.join(case.crash.handed_on)}", "siginfo") if case.crash.handed_on else None,
                ("no Python exception ended it: stderr does not end in a traceback", "stderr"),
            ),
            fixes=(
                consider(f"look at what {place.name}() is given", "a count of something makes a misleading exit code")
                if place
                else consider(
                    "find the call that sets the exit code",
                    "sys.exit(), os._exit(), or a launcher that passes on the status of a process it started",
                ),
            ),
            location=place.location if place else None,
        )


def _only_exit(crash: Crash) -> Use | None:
    """The only call in the sources that sets an exit code."""
    calls = [use for use in sources_of(crash).calls if use.name in ("exit", "_exit", "SystemExit")]
    return calls[0] if len(calls) == 1 else None


def _were_watched(crash: Crash) -> bool:
    """To the end, all of them, and nothing was seen."""
    return not crash.children and (crash.method == "agent" or not crash.gaps)


def _signal_for(exit_code: int) -> str | None:
    """The signal that a shell would mean by this exit code."""
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return None
