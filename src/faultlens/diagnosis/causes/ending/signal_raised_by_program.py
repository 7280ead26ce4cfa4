from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.senders import SENDING, asked_by_python, gave_up, line_that_sends, sender
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import is_own, short_function
from faultlens.records.crash import Frame
from faultlens.records.diagnosis import Location
from faultlens.text.safe import one_line

# The kernel sends these when a timer of the program itself runs out.
_TIMERS = {"SIGALRM": Wording.SETS_ALARM, "SIGVTALRM": Wording.SETS_TIMER, "SIGPROF": Wording.SETS_TIMER}


class SignalRaisedByProgram(Cause):
    """
    ## What it is
    The program sent the signal to itself: `os.kill(os.getpid(), …)`, `signal.raise_signal`, `os.abort()`, `raise()`
    in C, or a timer (`signal.alarm`) that ran out. Nothing was wrong with its memory.

    ## How it looks
    The same as a crash to a shell ("Segmentation fault"), but the signal carries the program's own process number
    and no address.

    ## How to prove it
    `si_code` is `SI_USER` or `SI_TKILL`, `si_pid` is the program itself, and the stack shows the call that sent it.
    A C or C++ library that calls `abort()` after an error is something else: look at what it complained about.

    ## How to fix it
    Remove the call, or let it end the program in another way (`sys.exit`). A timer needs a handler, or must be
    cancelled with `signal.alarm(0)` when the work is done in time.
    """

    slug = "signal-raised-by-program"
    code = "FL104"
    headline = "The program sent the signal to itself"

    def examine(self, case: Case) -> Finding | None:
        if sender(case) == "itself":
            return _recorded(case)
        if function := gave_up(case):
            return _gave_up(function)
        name = case.crash.outcome.signal if case.crash.outcome.kind == "signal" else None
        if case.fault is not None or name is None:
            return None
        if name in _TIMERS:
            return _timer(case, name)
        line = line_that_sends(case, name)
        if line is None:
            return None
        return Finding(
            strength=LIKELY + 0.05,
            title=f"the program sent {name} to itself",
            evidence=evidence((f"ended by {name}", "wait status"), (f"a line that sends it: {line}", "source")),
            fixes=_FIXES,
        )


def _recorded(case: Case) -> Finding:
    fault, thread = case.fault, case.crash.crashed_thread
    assert fault is not None
    frames = thread.frames[:12] if thread else ()
    call = next((frame for frame in frames if short_function(frame.function) in SENDING), None)
    by_python = call is None and asked_by_python(case)
    python = [frame for frame in frames if frame.kind == "python"]
    caller = next(filter(is_own, python), None)
    nearest = caller or next(iter(python), None)
    error = case.exception
    who = f"{nearest.function} at {nearest.file}:{nearest.line}" if nearest else "native code"
    return Finding(
        strength=PROVEN if call or by_python else STRONG,
        title=f"the program sent {fault.signal} to itself" + (f", in {caller.function}()" if caller else ""),
        evidence=evidence(
            (f"{fault.signal} with si_code {fault.code}: sent, no fault of the CPU", "siginfo"),
            (f"the sender is the program itself, process {fault.sender_pid or case.crash.pid}", "siginfo"),
            (f"{short_function(call.function)} was called by {who}", "stack") if call else None,
            (f"the interpreter sent it, on behalf of {who}", "stack") if by_python else None,
            (f"an exception came first: {error.type}: {one_line(error.message, 160)}", "stderr") if error else None,
        ),
        fixes=(consider(f"mend what raised {error.type.rpartition('.')[2]}", _raised_at(error)), *_FIXES)
        if error
        else _FIXES,
        by_stack=call is not None,
    )


def _raised_at(error: PythonException) -> str:
    place = next(filter(is_own, error.frames), None)
    where = f"{(place.file or '').rpartition('/')[2]}:{place.line}: " if place else ""
    return f"{where}{one_line(error.message, 160)}; the program ended itself because of it"


def _gave_up(frame: Frame) -> Finding:
    library = (frame.library or "").rpartition("/")[2]
    function = short_function(frame.function)
    return Finding(
        strength=LIKELY,
        title=f"{function} of {library} called abort()",
        evidence=evidence(
            ("SIGABRT: sent, no fault of the CPU", "siginfo"),
            (f"abort() was called by {function} itself, and not by a check of the C library", "native stack"),
            ("nothing was said about a failed check, damaged memory or an exception", "stderr"),
        ),
        fixes=(consider(f"look at what makes {function} give up", "and let it return an error instead"), *_FIXES[1:]),
    )


def _timer(case: Case, name: str) -> Finding:
    mention = case.mentions(_TIMERS[name])
    return Finding(
        strength=STRONG if mention else LIKELY,
        title=f"a timer of the program ran out and {name} had no handler",
        evidence=evidence(
            (f"ended by {name}: the kernel sends it when a timer of the process expires", "wait status"),
            (f"the timer: {mention.file}:{mention.line}: {mention.text}", "source")
            if mention
            else ("no other process is known to have sent it", "faultlens"),
        ),
        fixes=(
            consider("cancel the timer when the work is done", "signal.alarm(0)"),
            consider(f"install a handler for {name}", f"signal.signal(signal.{name}, handler)"),
        ),
        location=Location(file=mention.file, line=mention.line, function="") if mention else None,
    )


_FIXES = (
    consider("remove the call that sends the signal, or end the program with sys.exit() or an exception"),
    consider("look at the condition that led to the call", "the program decided to end itself there"),
)
