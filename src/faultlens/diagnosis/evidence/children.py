"""Which process is to be explained: the program, or one below it that died before and took the program along.

The order of events decides. The last crash before the end explains a program that failed right afterwards, that passed
the status on, or that complained of a process that was gone. What a program did not mind, it has survived."""

from __future__ import annotations

import re
import signal

from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.diagnosis.evidence.standing import AT_WORK, standing
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.records.crash import Crash
from faultlens.text.safe import last_lines

SOON_S = 1.5  # a program that ends so soon after a crash below it has seen nothing else
WORKERS_SOON_S = 20.0  # a program that fails after a worker of its own died; a loaded machine takes seconds to tell
TOGETHER_S = 1.0  # processes that die within this time of each other die of the first
_LINES = 200  # of what the program said
_WORKERS = ("multiprocessing", "loky")  # in the command line of workers that were spawned, not forked
# With these people and schedulers end a program; they explain nothing.
ASKED_FOR = frozenset({"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"})

_WHO = r"(?:process|worker|child|kernel|executor|actor|rank|node|pool|server|loader|replica|job)"
_DIED = (
    r"(?:die[ds]?\b|dead|broken|crash|lost|kill|terminat|abort|unexpected|was sent|node down|signal \d|\bSIG[A-Z]{2})"
)
_SIGNAL = r"exit ?code[:= ]+-\d+|returned -\d+|\bSIG(?:SEGV|ABRT|BUS|FPE|ILL|TRAP)\b|[Ss]egmentation fault|core dumped"
_COMPLAINS = re.compile(rf"{_WHO}.*{_DIED}|{_DIED}.*{_WHO}|{_SIGNAL}", re.IGNORECASE)
_IS_GONE = rf"(?:{_DIED}|exit|fail|status|return)"
_GONE = re.compile(_IS_GONE, re.IGNORECASE)
_TELLS_OF_CHILD = re.compile(rf"{_WHO}.*{_IS_GONE}|{_IS_GONE}.*{_WHO}|{_SIGNAL}", re.IGNORECASE | re.DOTALL)
# What whoever was waiting for an answer sees.
_OTHER_END_IS_GONE = ("EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError", "TimeoutError")


def subject_of(crash: Crash) -> Crash:
    """The process to explain."""
    child = crashed_child(crash)
    return child if child is not None and made_it_fail(child, crash) else crash


def told_of(crash: Crash) -> Crash:
    """The process that a report tells of: also one whose death the program survived, if that needs no explanation."""
    return (crashed_child(crash) if has_survived(crash) else None) or subject_of(crash)


def has_survived(crash: Crash) -> bool:
    """Whatever happened below it: it ended well, or because it was asked to."""
    return crash.outcome.kind == "ok" or (crash.outcome.kind == "signal" and crash.outcome.signal in ASKED_FOR)


def crashed_child(crash: Crash) -> Crash | None:
    """The last process below the program that crashed before its end; of several that did so together, the first."""
    died = [each for child in crash.children if (each := child if _has_crashed(child) else crashed_child(child))]
    found: Crash | None = None
    for child in sorted(died, key=lambda child: child.seconds or 0.0, reverse=True):
        if found is not None and (found.seconds or 0.0) - (child.seconds or 0.0) > TOGETHER_S:
            break
        found = child
    return found


def made_it_fail(child: Crash, crash: Crash) -> bool:
    """A program that died of a fault has died of that; an exception may be its own affair, and so may a deadlock."""
    if has_survived(crash) or not _has_crashed(child):
        return False
    if crash.was_running:
        found = standing(crash)
        return found.state not in AT_WORK and not found.deadlock and is_worker(child, crash)
    if crash.fault is not None or crash.outcome.kind == "signal":
        return _raised_again(child, crash)
    if crash.outcome.kind == "exception" and (exception := python_exception(crash)):
        return tells_of_child(exception, child) or (is_worker(child, crash) and _is_soon(child, crash))
    # sys.exit("…") gives 1, and a reason of its own.
    soon = WORKERS_SOON_S if is_worker(child, crash) and crash.outcome.exit_code != 1 else SOON_S
    return _passed_on(child, crash) or _is_soon(child, crash, soon) or _complained(child, crash)


def is_worker(child: Crash, crash: Crash) -> bool:
    """A part of the same program: forked, or a worker of multiprocessing."""
    command = child.program.command
    return command == crash.program.command or any(name in word for word in command for name in _WORKERS)


def tells_of_child(exception: PythonException, child: Crash) -> bool:
    told = f"{exception.type}: {exception.message}"
    kind = exception.type.rpartition(".")[2]
    return _names(told, child) or kind in _OTHER_END_IS_GONE or _TELLS_OF_CHILD.search(told) is not None


def _has_crashed(crash: Crash) -> bool:
    return crash.fault is not None or crash.outcome.kind == "signal"


def _is_soon(child: Crash, crash: Crash, soon: float = SOON_S) -> bool:
    return child.seconds is None or crash.seconds is None or crash.seconds - child.seconds <= soon


def _complained(child: Crash, crash: Crash) -> bool:
    """In what it printed. What the child itself printed is not in it."""
    lines = [line for text in (crash.output.stdout, crash.output.stderr) for line in last_lines(text or "", _LINES)]
    return any(_COMPLAINS.search(line) or (_names(line, child) and _GONE.search(line)) for line in lines)


def _names(text: str, child: Crash) -> bool:
    return child.pid is not None and re.search(rf"\b{child.pid}\b", text) is not None


def _passed_on(child: Crash, crash: Crash) -> bool:
    """The program ended with the exit code of its dead child, as shells and wrappers do."""
    number = getattr(signal, child.outcome.signal or "", None)
    return number is not None and crash.outcome.exit_code in (128 + number, 256 - number)


def _raised_again(child: Crash, crash: Crash) -> bool:
    """The program sent itself the signal that its child had died by, as wrappers do to end in the same way."""
    fault, thread = crash.fault, crash.crashed_thread
    sent_itself = fault is not None and fault.sender_pid == crash.pid
    aborted = thread is not None and any(frame.function == "abort" for frame in thread.frames)
    return sent_itself and not aborted and crash.outcome.signal == child.outcome.signal
