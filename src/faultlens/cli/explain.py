"""`faultlens explain`: makes a report from a core file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from faultlens.cli import output

if TYPE_CHECKING:
    from faultlens.crash import Crash

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Explain a core file, plain or packed (.gz, .zst, .lz4). `coredumpctl` takes the latest one that
systemd kept, `coredumpctl:MATCH` the latest for a process id or program."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("explain", help="explain a core file", description=DESCRIPTION)
    parser.add_argument("core", metavar="CORE", help="the core file, or coredumpctl[:MATCH]")
    parser.add_argument("executable", nargs="?", metavar="EXE", type=Path, help="the program that dumped it")
    parser.add_argument("--no-contents", action="store_true", help="leave the values of tensors out of the report")
    parser.add_argument("--no-save", action="store_true", help="do not keep the report")
    output.add_arguments(parser)
    parser.set_defaults(handler=explain)


def explain(arguments: argparse.Namespace) -> int:
    from faultlens.capture.live import with_remembered
    from faultlens.capture.sources import with_sources
    from faultlens.reporting import make_report

    crash = _read(arguments.core, arguments.executable, not arguments.no_contents)
    report = make_report(with_sources(with_remembered(crash)))
    stored = None if arguments.no_save else output.save(report)
    output.write_files(report, arguments)
    if not output.taken_up(arguments):
        output.render(report, sys.stdout, verbose=arguments.verbose, stored=stored)
    return 0


def _read(core: str, executable: Path | None, contents: bool) -> Crash:
    from faultlens.capture.coredumpctl import fetched_core, is_coredumpctl
    from faultlens.capture.corefile import read_core

    if not is_coredumpctl(core):
        return read_core(Path(core), executable, contents=contents)
    with fetched_core(core) as path:
        return read_core(path, executable, contents=contents)
