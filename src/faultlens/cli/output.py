"""What the verbs share when they show a report or write it: as JSON, a page, Markdown or SARIF."""

from __future__ import annotations

import os
import stat
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from faultlens.errors import FaultlensError
from faultlens.text.safe import make_printable, one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from rich.console import Console

    from faultlens.records.crash import Record, Saving
    from faultlens.records.report_file import Report
    from faultlens.target_env.which_python import Choice

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

N = TypeVar("N", int, float)
PIPE_WIDTH = 80
SECRET = 0o600  # the mode of new files that quote a program's memory, output or data


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help="show everything that was recorded")
    parser.add_argument("--json", metavar="PATH", help="write the report as JSON; - is standard output")
    parser.add_argument("--html", metavar="PATH", help="write the report as a page that needs nothing else")
    parser.add_argument("--markdown", metavar="PATH", help="write it as Markdown, to paste into a bug report")
    parser.add_argument("--sarif", metavar="PATH", help="write it as SARIF 2.1.0, for code review tools")


def python_for(arguments: Namespace) -> str:
    """The Python that a verb works with."""
    from faultlens.target_env.which_python import which_python

    choice = which_python(arguments.python, os.environ)
    say_python(choice, arguments)
    return choice.executable


def say_python(choice: Choice, arguments: Namespace) -> None:
    if arguments.verbose and not getattr(arguments, "quiet", False):
        print(f"faultlens: {one_line(choice.in_words(), 1000)}", file=sys.stderr, flush=True)


def taken_up(arguments: Namespace) -> bool:
    """Whether standard output belongs to a file format."""
    return "-" in _targets(arguments)


def check_targets(arguments: Namespace) -> None:
    if _targets(arguments).count("-") > 1:
        raise FaultlensError("Only one format can go to standard output.", "Name files for the others.")
    for target in _targets(arguments):
        if target and target != "-":
            _check_target(Path(target))


def _check_target(path: Path) -> None:
    """Before anything is done: what was found after hours must not be lost to a name that was mistyped."""
    folder = path.resolve().parent
    problem = "it is a folder" if path.is_dir() else ""
    if not problem and (not path.exists() or path.is_file()):  # not a pipe or /dev/null
        if not folder.is_dir():
            problem = f"there is no folder {folder}"
        elif not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
            problem = f"you may not write in {folder}"
    if problem:
        raise FaultlensError(f"Cannot write the report to {path}: {problem}.", "Name another file.")


def write_files(report: Report, arguments: Namespace, quiet: bool = False) -> None:
    """Write the formats that were asked for; and say so, unless `quiet`."""
    if arguments.json:
        write_json(report, arguments.json, quiet)
    if arguments.html:
        from faultlens.report import html

        write_bytes(html.page(report).encode(), arguments.html, SECRET, quiet)
    if arguments.markdown:
        from faultlens.report import markdown

        write_bytes(markdown.document(report).encode(), arguments.markdown, SECRET, quiet)
    if arguments.sarif:
        from faultlens.report import sarif

        write_bytes(sarif.document(report), arguments.sarif, SECRET, quiet)


def _targets(arguments: Namespace) -> list[str | None]:
    return [getattr(arguments, name, None) for name in ("json", "html", "markdown", "sarif")]


def console(stream: TextIO) -> Console:
    """Colours and the width of the screen in a terminal; plain text in a pipe or under NO_COLOR."""
    from rich.console import Console

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
    name: str = "",
    saves_today: Saving | None = None,
) -> None:
    """`name`: what the report is called on the command line, unless it is the latest."""
    from faultlens.report import terminal

    screen = console(stream)
    terminal.render(report, verbose=verbose, console=screen, stored=stored, name=name, saves_today=saves_today)


def save(report: Report) -> Path | None:
    """Keep the report for `faultlens show`. One that cannot be kept can still be shown."""
    from faultlens.store import folder

    try:
        return folder.save(report)
    except FaultlensError as error:
        print(f"faultlens: {error}", file=sys.stderr)
        return None


def write_json(report: Report, target: str, quiet: bool = False) -> None:
    """Write the report to a file, in one step, or to standard output."""
    from faultlens.records import report_file

    write_bytes(report_file.to_json(report) + b"\n", target, SECRET, quiet)


def write_record(record: Record, target: str, mode: int = 0o666) -> None:
    """What a command found, as JSON."""
    import msgspec

    from faultlens.records.report_file import printable

    data = msgspec.json.encode(printable(msgspec.to_builtins(record)))
    write_bytes(msgspec.json.format(data, indent=1) + b"\n", target, mode)


def present(record: Record, arguments: Namespace, render: Callable[..., None]) -> None:
    """What a command found: as JSON where that is wished, and for people unless that has taken standard output."""
    if arguments.json:
        write_record(record, arguments.json)
    if arguments.json != "-":
        render(record, console=console(sys.stdout), verbose=arguments.verbose)


def write_bytes(data: bytes, target: str, mode: int = 0o666, quiet: bool = False) -> None:
    """`mode` is that of a new file, less the umask; one that is there keeps its own. A file is told of on stderr."""
    from faultlens.fs.atomic import replace_file

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
            if not quiet:
                print(f"faultlens: wrote {one_line(target)}", file=make_printable(sys.stderr))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FaultlensError(f"Cannot write the report to {target}: {error.strerror}.", "Name another file.") from error


# ------------------------------------------------------------------------- what may stand behind an option


def positive_seconds(text: str) -> float:
    return _number(text, float, 1e-9, 10**9, "a positive number of seconds")


def seconds(text: str) -> float:
    return _number(text, float, 0, 10**9, "a number of seconds")


def positive_number(text: str) -> int:
    return _number(text, int, 1, 10**9, "a whole number, at least 1")


def whole_number(text: str) -> int:
    return _number(text, int, 0, 2**63, "a whole number")


def _number(text: str, kind: Callable[[str], N], least: float, beyond: float, wanted: str) -> N:
    """Of anything else argparse would say that it is an invalid value of the function's name."""
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value < beyond:
        raise ArgumentTypeError(f"must be {wanted}, not {one_line(text, 40)!r}")
    return value
