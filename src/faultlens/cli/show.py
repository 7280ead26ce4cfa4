"""`faultlens show`: opens a report that was kept, or lists them."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from faultlens.cli import output
from faultlens.cli.exit_codes import FINE
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.records.crash import Saving
    from faultlens.records.report_file import Report
    from faultlens.store.folder import Entry

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Show a report that `faultlens run` or `faultlens explain` kept. REPORT is the beginning of an id
(see --list), a crash folder or a report.json; without it the latest report is shown. If the program died while
it was saving, the saves are looked at again, and shown as they are now."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("show", help="show or list earlier reports", description=DESCRIPTION)
    parser.add_argument("report", nargs="?", metavar="REPORT", help="which one; the latest by default")
    parser.add_argument("--list", action="store_true", help="list the reports, newest first")
    output.add_arguments(parser)
    parser.set_defaults(handler=show)


def show(arguments: argparse.Namespace) -> int:
    if not (arguments.report and Path(arguments.report).exists()):
        _check_home()
    if arguments.list:
        return _list(arguments.json)
    from faultlens.records import report_file
    from faultlens.report.make import renewed
    from faultlens.store import folder
    from faultlens.store.trust import doubt_about, doubt_about_place

    path = folder.find(arguments.report)
    report = renewed(report_file.read(path))
    output.write_files(report, arguments)
    if not output.taken_up(arguments):
        today = _saves_today(report) if doubt_about(path, report) is None else None
        name = shlex.quote(arguments.report) if arguments.report else ""
        output.render(report, sys.stdout, verbose=arguments.verbose, stored=path, name=name, saves_today=today)
    if folder.is_kept(path) and (doubt := doubt_about_place(path)):
        print(f"faultlens: {doubt}", file=sys.stderr)
    return FINE


def _check_home() -> None:
    from faultlens.fs.state_dir import home

    if home().exists() and not home().is_dir():
        raise FaultlensError(f"{home()} is not a folder.", "Set FAULTLENS_HOME to the folder that reports are kept in.")


def _saves_today(report: Report) -> Saving | None:
    """The saves that were looked at when the program ended, looked at again; only those that our own report names."""
    from faultlens.report.verdict import subject

    saving = subject(report).saving
    if saving is None:
        return None
    from faultlens.supervise.saves import state_of

    found = state_of(Path(saving.path), [Path(save.path) for save in saving.saves])
    return found if not isinstance(found, str) else None


def _list(json_target: str | None) -> int:
    from faultlens.store import folder

    entries = folder.listing()
    if json_target:
        import msgspec

        output.write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=1) + b"\n", json_target)
    if json_target != "-":
        _print(entries)
        if entries:
            _print_keeping(len(entries))
    return FINE


def _print(entries: list[Entry]) -> None:
    from rich.text import Text

    from faultlens.fs.state_dir import home
    from faultlens.report.page import QUIET, print_line, words, wrap
    from faultlens.text.quantities import moment

    console = output.console(sys.stdout)
    if not entries:
        print_line(console, words(f"There are no reports in {home()} yet; `faultlens run` writes them."))
    for entry in entries:
        head = Text.assemble((entry.id, "bold"), "  ", (moment(entry.time).ljust(16), QUIET), "  ")
        whose = f" (of user {entry.owner})" if entry.owner is not None else ""
        for line in wrap(words(entry.headline + whose), max(console.width - len(head), 30)):
            print_line(console, Text.assemble(head, line))
            head = Text(" " * len(head))


def _print_keeping(number: int) -> None:
    """Reports do not stay for ever: whoever looks for one that is gone must learn why."""
    from faultlens.fs.state_dir import home
    from faultlens.report.page import QUIET, print_line, words, wrap
    from faultlens.store import keeping
    from faultlens.text.quantities import count, moment

    removed = keeping.removed(home())
    said = f"{count(number, 'report')} in {home()}."
    try:
        bounds = keeping.bounds()
        said += f" Kept: {bounds} ({keeping.NUMBER}, {keeping.BYTES} and {keeping.DAYS} change that)."
    except FaultlensError as error:
        said += f" {error} Until then none is removed."
    if removed.number:
        said += f" At least {count(removed.number, 'older one')} made room, the last on {moment(removed.time)}."
    console = output.console(sys.stdout)
    print_line(console, words(""))
    for line in wrap(words(said, QUIET), console.width):
        print_line(console, line)
