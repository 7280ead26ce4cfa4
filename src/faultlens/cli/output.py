"""What the verbs share when they show a report or write it: as JSON, a page, Markdown or SARIF."""

from __future__ import annotations

import os
import stat
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from faultlens.errors import FaultlensError
from faultlens.safe_text import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from rich.console import Console

    from faultlens.crash import Record, Saving
    from faultlens.reportfile import Report

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

PIPE_WIDTH = 80
SECRET = 0o600  # the mode of new files that quote a program's memory, output or data


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help="show everything that was recorded")
    parser.add_argument("--json", metavar="PATH", help="write the report as JSON; - is standard output")
    parser.add_argument("--html", metavar="PATH", help="write the report as a page that needs nothing else")
    parser.add_argument("--markdown", metavar="PATH", help="write it as Markdown, to paste into a bug report")
    parser.add_argument("--sarif", metavar="PATH", help="write it as SARIF 2.1.0, for code review tools")


def taken_up(arguments: Namespace) -> bool:
    """Whether standard output belongs to a file format."""
    return "-" in _targets(arguments)


def check_targets(arguments: Namespace) -> None:
    if _targets(arguments).count("-") > 1:
        raise FaultlensError("Only one format can go to standard output.", "Name files for the others.")


def write_files(report: Report, arguments: Namespace) -> None:
    """Write the formats that were asked for."""
    check_targets(arguments)
    if arguments.json:
        write_json(report, arguments.json)
    if arguments.html:
        from faultlens.report import html

        write_bytes(html.page(report).encode(), arguments.html, SECRET)
    if arguments.markdown:
        from faultlens.report import markdown

        write_bytes(markdown.document(report).encode(), arguments.markdown, SECRET)
    if arguments.sarif:
        from faultlens.report import sarif

        write_bytes(sarif.document(report), arguments.sarif, SECRET)


def _targets(arguments: Namespace) -> list[str | None]:
    return [arguments.json, arguments.html, arguments.markdown, arguments.sarif]


def console(stream: TextIO) -> Console:
    """Colours and the width of the screen in a terminal; plain text in a pipe or under NO_COLOR."""
    from rich.console import Console

    from faultlens.safe_text import make_printable

    class OurConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, which means findings

    terminal = stream.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    return OurConsole(
        file=make_printable(stream),
        color_system=None if plain else "auto",
        width=None if terminal else PIPE_WIDTH,
        force_terminal=None if terminal else False,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


class Status:
    """One line that says what is being done, on a terminal only."""

    def __init__(self) -> None:
        self._width = 0
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Status:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def tell(self, text: str) -> None:
        if self._shown:
            line = f"faultlens: {one_line(text, 90)} …"
            print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def clear(self) -> None:
        if self._shown and self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


def render(
    report: Report,
    stream: TextIO,
    *,
    verbose: bool = False,
    stored: Path | None = None,
    saves_today: Saving | None = None,
) -> None:
    from faultlens.report import terminal

    terminal.render(report, verbose=verbose, console=console(stream), stored=stored, saves_today=saves_today)


def save(report: Report) -> Path | None:
    """Keep the report for `faultlens show`. One that cannot be kept can still be shown."""
    from faultlens.store import folder

    try:
        return folder.save(report)
    except FaultlensError as error:
        print(f"faultlens: {error}", file=sys.stderr)
        return None


def write_json(report: Report, target: str) -> None:
    """Write the report to a file, in one step, or to standard output."""
    from faultlens import reportfile

    write_bytes(reportfile.to_json(report) + b"\n", target, SECRET)


def write_record(record: Record, target: str, mode: int = 0o666) -> None:
    """What a command found, as JSON."""
    import msgspec

    from faultlens.reportfile import printable

    data = msgspec.json.encode(printable(msgspec.to_builtins(record)))
    write_bytes(msgspec.json.format(data, indent=1) + b"\n", target, mode)


def present(record: Record, arguments: Namespace, render: Callable[..., None]) -> None:
    """What a command found: as JSON where that is wished, and for people unless that has taken standard output."""
    if arguments.json:
        write_record(record, arguments.json)
    if arguments.json != "-":
        render(record, console=console(sys.stdout), verbose=arguments.verbose)


def write_bytes(data: bytes, target: str, mode: int = 0o666) -> None:
    """`mode` is that of a new file, less the umask; one that is there keeps its own."""
    from faultlens.durable import replace_file

    path = Path(target)
    try:
        if target == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        elif path.exists() and not path.is_file():  # a pipe, /dev/null
            path.write_bytes(data)
        else:
            there = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
            replace_file(path, data, mode)
            if there is not None:
                path.chmod(there & 0o777)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FaultlensError(f"Cannot write the report to {target}: {error.strerror}.", "Name another file.") from error


def positive_seconds(text: str) -> float:
    """For an argument of the command line."""
    value = float(text)
    if not 0 < value < 10**9:
        raise ArgumentTypeError("must be a positive number of seconds")
    return value
