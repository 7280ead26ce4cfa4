"""Who sent the signal that ended a program: itself, another process, or the kernel."""

from __future__ import annotations

import re
import signal
from typing import Literal

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import short_function
from faultlens.inspection.owners import is_ffi, owner_of
from faultlens.records.crash import Frame

Sender = Literal["itself", "another process", "unknown"]

# Functions that send a signal because somebody asked for it: in Python, in C, and os.abort().
SENDING = frozenset({
    "os_kill", "os_kill_impl", "os_killpg", "os_killpg_impl", "os_abort", "os_abort_impl", "signal_raise_signal",
    "signal_raise_signal_impl", "signal_pthread_kill", "signal_pthread_kill_impl", "faulthandler_sigsegv",
    "faulthandler_sigabrt", "faulthandler_sigfpe", "faulthandler_raise_sigsegv", "kill", "killpg", "tgkill", "sigqueue",
})  # fmt: skip
# A handler that gives up sends the signal once more: the first one is the one to explain.
_HANDLING = frozenset({"faulthandler_fatal_error", "__restore_rt", "<signal handler called>"})
# The program's own lines that send it a signal.
_COMPLAINT = re.compile(
    r"Fatal Python error: (?!Aborted|Segmentation|Bus error|Illegal|Floating)"
    r"|Assertion .* failed|terminate called|corrupt|ERROR: \w*Sanitizer"
    r"|stack smashing|overflow"
)
_SHELLS = re.compile(r"/(?:ba|da|z|k|a|fi)?sh\d?$|/busybox$|/env$|/timeout$|/nice$|/xargs$|/sudo$")


def ended_by(case: Case) -> str | None:
    """The signal that ended the program, also where a shell that ran it tells so by an exit code above 128."""
    outcome = case.crash.outcome
    if outcome.kind != "exit" or outcome.exit_code is None or case.fault is not None:
        return outcome.signal if outcome.kind == "signal" else None
    if not _SHELLS.search(case.crash.program.executable or ""):
        return None
    try:
        return signal.Signals(outcome.exit_code - 128).name
    except ValueError:
        return None


def sender(case: Case) -> Sender:
    """For a signal that was recorded with its sender."""
    fault = case.fault
    if fault is None or fault.code not in ("SI_USER", "SI_TKILL", "SI_QUEUE"):
        return "unknown"
    thread = case.crash.crashed_thread
    frames = thread.frames[:12] if thread else ()
    names = {short_function(frame.function) for frame in frames if frame.kind == "native"}
    if _HANDLING & names:
        return "unknown"
    if SENDING & names or asked_by_python(case):  # before the numbers: they differ between PID namespaces
        return "itself"
    if fault.code != "SI_TKILL" and fault.sender_pid != case.crash.pid:
        return "another process"
    return "itself" if fault.signal != "SIGABRT" and fault.sender_pid == case.crash.pid else "unknown"


def asked_by_python(case: Case) -> bool:
    """Python's own code called abort() or raise() and had no complaint: os.abort(), signal.raise_signal(), ctypes.

    Told by whose code it is, because the functions of a stripped interpreter have no names."""
    thread, first = case.crash.crashed_thread, next(iter(case.stack), None)
    if thread is None or first is None or first is thread.frames[0]:
        return False
    if owner_of(first) != "python" and not is_ffi(first):
        return False
    if case.block is not None:  # the fence gave up
        return False
    return not (case.crash.abort_message or case.check or case.termination or case.said(_COMPLAINT))


def gave_up(case: Case) -> Frame | None:
    """The function of the user's own library that called abort() by itself, without a word of why."""
    caller = caller_of_abort(case)
    return caller if caller is not None and owner_of(caller) == "custom" else None


def caller_of_abort(case: Case) -> Frame | None:
    """The function that called abort() by itself, without a word of why."""
    thread = case.crash.crashed_thread
    if not case.aborted or thread is None or case.check or case.termination or case.crash.abort_message:
        return None
    names = [short_function(frame.function) for frame in thread.frames[:8]]
    if "abort" not in names[:5] or case.said(_COMPLAINT):
        return None
    return next(iter(thread.frames[names.index("abort") + 1 :]), None)


def line_that_sends(case: Case, name: str | None) -> str | None:
    """The line of the user's sources that sends this signal to the program itself."""
    mention = case.mentions(Wording.SENDS_ITSELF)
    if mention is None:
        return None
    named = re.findall(r"\bSIG[A-Z0-9]+\b", mention.text)
    return f"{mention.file}:{mention.line}: {mention.text}" if not named or name in named else None
