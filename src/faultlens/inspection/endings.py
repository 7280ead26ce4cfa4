"""How a program ended, told from its wait status and its last words."""

from __future__ import annotations

import os
import re

from faultlens.inspection.siginfo import signal_name
from faultlens.records.crash import Outcome

TRACEBACK = "Traceback (most recent call last):"
# The last line of a traceback: an exception's name, alone or with its message.
EXCEPTION_LINE = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$", re.M)
# The main script itself cannot be compiled: there is no stack, and no header.
SYNTAX_ERROR = re.compile(r'^  File ".+", line \d+\n(?:.*\n){1,4}(?:Syntax|Indentation|Tab)Error: ', re.M)
PYTHON_EXCEPTION_STATUS = 1


def outcome_of(status: int, stderr: str | None) -> Outcome:
    if os.WIFSIGNALED(status):
        name = signal_name(os.WTERMSIG(status))
        return Outcome(kind="signal", signal=name, core_dumped=os.WCOREDUMP(status))
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return Outcome(kind="ok", exit_code=0)
    if code == PYTHON_EXCEPTION_STATUS and ends_in_traceback(stderr or ""):
        return Outcome(kind="exception", exit_code=code)
    return Outcome(kind="exit", exit_code=code)


def ends_in_traceback(text: str) -> bool:
    _, found, rest = text.rpartition(TRACEBACK)
    return bool(found and EXCEPTION_LINE.search(rest)) or bool(SYNTAX_ERROR.search(text))
