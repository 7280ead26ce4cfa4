"""The exit statuses of all verbs; docs/exit-codes.md lists them. `faultlens run` passes on that of the program."""

from __future__ import annotations

FINE = 0
FINDINGS = 1  # something is wrong with what was looked at; no reproducer; it does not fit
CANNOT = 2  # what was asked for could not be done, or not all of it; argparse takes it for bad arguments, too
INTERRUPTED = 130  # 128 + SIGINT, as shells count
READER_GONE = 141  # 128 + SIGPIPE: `faultlens show --list | head`


def exit_status(*, findings: bool, unseen: bool = False) -> int:
    """What was found goes before what could not be looked at."""
    return FINDINGS if findings else CANNOT if unseen else FINE
