"""Whether the crash of a child process is why the program failed, or something the program expected and survived."""

from __future__ import annotations

import re
import signal

from faultlens.clues.last_words import python_exception
from faultlens.crash import Crash

# Exceptions that tell of a dead child: process pools, subprocess, data loaders.
_TELLS_OF_CHILD = re.compile(
    r"BrokenProcessPool|terminated abruptly|died with|died unexpectedly|exited unexpectedly|killed by signal"
    r"|exit ?code[:= ]+-\d+|returned -\d+|Signals\.SIG|\bSIG(?:SEGV|ABRT|BUS|FPE|ILL|TRAP)\b"
)
_WORKER = "multiprocessing"  # in the command line of workers that were spawned, not forked


def made_it_fail(child: Crash, crash: Crash) -> bool:
    """A program that ended well has survived it, whatever it was; a worker's death explains a failure."""
    if child.fault is None or crash.outcome.kind == "ok":
        return False
    return is_worker(child, crash) or _passed_on(child, crash) or _told_of(crash)


def is_worker(child: Crash, crash: Crash) -> bool:
    """A part of the same program: forked, or a worker of multiprocessing."""
    command = child.program.command
    return command == crash.program.command or any(_WORKER in word for word in command)


def _passed_on(child: Crash, crash: Crash) -> bool:
    """The program ended with the exit code of its dead child, as shells and wrappers do."""
    number = getattr(signal, child.outcome.signal or "", None)
    return number is not None and crash.outcome.exit_code in (128 + number, 256 - number)


def _told_of(crash: Crash) -> bool:
    exception = python_exception(crash)
    return exception is not None and bool(_TELLS_OF_CHILD.search(f"{exception.type}: {exception.message}"))
