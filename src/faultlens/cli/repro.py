"""`faultlens repro`: a small script that dies as the reported program did, proved by running it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from faultlens.cli import output
from faultlens.cli.exit_codes import FINDINGS, FINE
from faultlens.errors import FaultlensError
from faultlens.text.safe import one_line

if TYPE_CHECKING:
    from faultlens.records.report_file import Report
    from faultlens.repro.task import Found, MayRun

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

LINES_ASKED_ABOUT = 60

DESCRIPTION = """\
From a report, write a folder with a small script that dies the same way: a call of the op at fault with the inputs
that were recorded or, where that does not die, the program itself, reduced. It is run in a sandbox, shrunk while it
still dies, and started three times for the proof. REPORT is as for `faultlens show`; the latest by default.
A report that somebody else may have written (a file, one made from a core, one in a folder that others can write)
runs nothing without --trust, and then all of it inside the sandbox.
Exit status: 0 it reproduces, 1 it does not, 2 it could not be tried."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "repro", help="write a small script that crashes the same way", description=DESCRIPTION
    )
    parser.add_argument("report", nargs="?", metavar="REPORT", help="which one; the latest by default")
    parser.add_argument(
        "--seconds", type=output.seconds, default=60.0, metavar="N", help="time for shrinking (default: 60)"
    )
    parser.add_argument("--python", metavar="PATH", help="the Python to run it with; that of the program by default")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write; it must be new or empty")
    parser.add_argument(
        "--trust", action="store_true", help="run what a report that others may have written says, in the sandbox"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before running a program that was changed")
    parser.add_argument(
        "--json", metavar="PATH", help="write the report with its reproducer as JSON; - is standard output"
    )
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.records import report_file
    from faultlens.repro.folder import write_folder
    from faultlens.repro.reproduce import crash_to_reproduce, wanted_death
    from faultlens.repro.task import NotReproducedError
    from faultlens.store import folder
    from faultlens.store.trust import admit

    path = folder.find(arguments.report)
    report = report_file.read(path)
    screen = output.Status()
    try:
        wanted_death(crash_to_reproduce(report))  # what cannot be reproduced needs nobody's trust
        own = admit(path, report, arguments.trust)
        found = _found(report, path, own, arguments, screen)
    except NotReproducedError as reason:
        screen.clear()
        print(f"faultlens: no reproducer. {one_line(str(reason), 2000)}", file=sys.stderr)
        return FINDINGS
    screen.clear()
    written = write_folder(found, folder.identity(path), arguments.out)
    _hand_over(report, found, path if own else None, written, arguments)
    return FINE


def _found(report: Report, path: Path, own: bool, arguments: argparse.Namespace, screen: output.Status) -> Found:
    from faultlens.repro.foreign import reproduce_confined
    from faultlens.repro.reproduce import crash_to_reproduce, reproduce
    from faultlens.repro.task import Options
    from faultlens.sandbox.guest import confinement
    from faultlens.store.keeping import in_use

    crash = crash_to_reproduce(report)
    options = Options(arguments.python, arguments.seconds, own=own, of_child=crash is not report.crash)
    may_run = _asking(arguments.yes or not own, screen)
    if less := confinement.in_words(confinement.available().not_held()):
        print(f"faultlens: {less}", file=sys.stderr)
    if not own:
        return reproduce_confined(crash, options, may_run, screen.tell)
    with in_use(path):
        return reproduce(crash, options, may_run, screen.tell)


def _hand_over(report: Report, found: Found, kept: Path | None, written: Path, arguments: argparse.Namespace) -> None:
    """`kept`: the report that gets its reproducer."""
    from faultlens.report.make import with_reproducer
    from faultlens.report.reproducer import reproducer_in_words, script_lines
    from faultlens.store import folder

    record = found.record()
    report = with_reproducer(report, record)
    if kept:
        folder.update(kept, report)
    if arguments.json:
        output.write_json(report, arguments.json)
    if arguments.json == "-":
        return
    print(f"{reproducer_in_words(record)}\n")
    for line in script_lines(record):
        print(f"    {line}".rstrip())
    beside = ", ".join(one_line(name, 80) for name in record.files)
    print(f"\nIt is in {written}" + (f", with {beside}" if beside else ""))


def _asking(yes: bool, screen: output.Status) -> MayRun:
    """What nobody has run as it is now is shown first."""

    def may_run(what: str, text: str) -> None:
        if yes:
            return
        problem = f"To go on is to {what}."
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise FaultlensError(problem, "Read it, then say --yes.")
        screen.clear()
        lines = text.splitlines()
        for line in lines[:LINES_ASKED_ABOUT]:
            print(f"    {one_line(line, 200)}", file=sys.stderr)
        if len(lines) > LINES_ASKED_ABOUT:
            print(f"    … and {len(lines) - LINES_ASKED_ABOUT} more lines", file=sys.stderr)
        print(f"faultlens: {problem} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise FaultlensError("Nothing was run.")

    return may_run
