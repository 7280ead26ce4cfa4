"""`faultlens explain`: makes a report from a core file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from faultlens.cli import output
from faultlens.cli.exit_codes import FINE
from faultlens.errors import FaultlensError
from faultlens.text.safe import make_printable, one_line

if TYPE_CHECKING:
    from faultlens.records.crash import Crash
    from faultlens.supervise.source_folders import SourceFolders

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

MAX_SAID = 3
NOBODY = 65534  # systemd's store has cores of everybody: only what all may read is shown

DESCRIPTION = """\
Explain a core file, plain or packed (.gz, .zst, .lz4). `coredumpctl` takes the latest one that
systemd kept, `coredumpctl:MATCH` the latest for a process id or program."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("explain", help="explain a core file", description=DESCRIPTION)
    parser.add_argument("core", metavar="CORE", help="the core file, or coredumpctl[:MATCH]")
    parser.add_argument("executable", nargs="?", metavar="EXE", type=Path, help="the program that dumped it")
    parser.add_argument(
        "--source-root",
        metavar="FOLDER",
        type=Path,
        action="append",
        default=[],
        help="where the sources of the program may be read, beside the current folder; may be given again",
    )
    parser.add_argument("--no-sources", action="store_true", help="leave every line of the program out of the report")
    parser.add_argument("--no-contents", action="store_true", help="leave the values of tensors out of the report")
    parser.add_argument("--unredacted", action="store_true", help="keep what may be secret, and whole source files")
    parser.add_argument("--no-save", action="store_true", help="do not keep the report")
    output.add_arguments(parser)
    parser.set_defaults(handler=explain)


def explain(arguments: argparse.Namespace) -> int:
    from faultlens.report.make import make_report
    from faultlens.supervise.live import with_remembered
    from faultlens.supervise.sources import with_sources, without_sources

    folders = _source_folders(arguments)
    crash = _read(arguments)
    crash = with_sources(with_remembered(crash, folders), folders)
    report = make_report(without_sources(crash) if arguments.no_sources else crash)
    stored = None if arguments.no_save else output.save(report)
    output.write_files(report, arguments)
    if not output.taken_up(arguments):
        output.render(report, sys.stdout, verbose=arguments.verbose, stored=stored)
        sys.stdout.flush()
    _say_what_is_missing(crash, arguments)
    return FINE


def _say_what_is_missing(crash: Crash, arguments: argparse.Namespace) -> None:
    """Whoever reads the verdict must know that it was made from less than there could be."""
    from faultlens.inspection.corefile.read import NOT_IN_A_CORE
    from faultlens.inspection.frames import user_frame

    frame = user_frame(crash)
    said = [gap for gap in crash.gaps if gap != NOT_IN_A_CORE] if not arguments.verbose else []
    is_read = not frame or frame.kind != "python" or frame.file in crash.sources or arguments.no_sources
    if frame and not is_read and not any("--source-root" in gap for gap in crash.gaps):
        said.insert(0, f"{frame.file} was not found: --source-root FOLDER names where the sources are")
    for sentence in said[:MAX_SAID]:
        print(f"faultlens: {one_line(sentence)}", file=make_printable(sys.stderr))


def _source_folders(arguments: argparse.Namespace) -> SourceFolders:
    from faultlens.inspection.corefile.coredumpctl import is_coredumpctl
    from faultlens.supervise.source_folders import SourceFolders

    for folder in arguments.source_root:
        if not folder.is_dir():
            raise FaultlensError(f"{folder} is not a folder.", "Name the one that the program's sources are in.")
    core = Path(arguments.core)
    of_somebody = core.exists() and not is_coredumpctl(arguments.core)
    return SourceFolders.of_core(core.stat().st_uid if of_somebody else NOBODY, arguments.source_root)


def _read(arguments: argparse.Namespace) -> Crash:
    from faultlens.inspection.corefile.coredumpctl import fetched_core, is_coredumpctl
    from faultlens.inspection.corefile.read import read_core

    def read(path: Path) -> Crash:
        redact, contents = not arguments.unredacted, not arguments.no_contents
        return read_core(path, arguments.executable, redact=redact, contents=contents)

    if not is_coredumpctl(arguments.core):
        return read(Path(arguments.core))
    with fetched_core(arguments.core) as path:
        return read(path)
