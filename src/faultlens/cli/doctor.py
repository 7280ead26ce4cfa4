"""`faultlens doctor`: says before the crash what will crash."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultlens.cli import output, own_imports
from faultlens.cli.exit_codes import FINE, exit_status
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.doctor.check import Check
    from faultlens.records.finding import Checkup, Finding
    from faultlens.target_env.target import Options

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.


DESCRIPTION = """\
Look at the machine and at the environment a program would run in, without importing TensorFlow, and say what will
crash. Run it in the shell, container or job in which the program would run.

  faultlens doctor                        all checks, one line each
  faultlens doctor numpy-abi cpu -v       two of them, with everything they saw
  faultlens doctor --op libmy_op.so       and a custom op against the installed TensorFlow
  faultlens doctor --fix                  repair what can be repaired, after asking
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "doctor",
        help="say before the crash what will crash",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="only these checks (see --list)")
    parser.add_argument("--list", action="store_true", help="list the checks and what they look at; -v explains them")
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment to look at")
    parser.add_argument("--cpu", metavar="NAME", help="judge for another CPU: nehalem, haswell, x86-64-v2, …")
    parser.add_argument("--op", metavar="LIBRARY", action="append", default=[], help="a custom op library to check")
    parser.add_argument("--model", metavar="PATH", action="append", default=[], help="a saved model or checkpoint")
    parser.add_argument(
        "--save-to", metavar="FOLDER", action="append", default=[], help="a folder the program saves to"
    )
    parser.add_argument(
        "--deep", action="store_true", help="read whole libraries and files, and try the import; takes seconds"
    )
    repair = parser.add_mutually_exclusive_group()
    repair.add_argument("--fix", action="store_true", help="repair what can be repaired; asks before each step")
    repair.add_argument("--dry-run", action="store_true", help="show what --fix would do")
    parser.add_argument("-y", "--yes", action="store_true", help="with --fix: do not ask")
    parser.add_argument("-v", "--verbose", action="store_true", help="show everything each check saw")
    parser.add_argument("--json", metavar="PATH", help="write the check-up as JSON; - is standard output")
    parser.set_defaults(handler=handle, is_apart=True)


def handle(arguments: argparse.Namespace) -> int:
    variables = _undisturbed()
    from faultlens.doctor.examine import examine, named
    from faultlens.records.severity import is_grave, worst
    from faultlens.target_env.target import meet

    checks = named(arguments.checks)
    if arguments.list:
        return _list(checks, arguments.json, arguments.verbose)
    options = _options(arguments)
    checkup = examine(meet(options, variables), checks)
    if arguments.json:
        output.write_record(checkup, arguments.json)
    if arguments.json != "-":
        _show(checkup, arguments.verbose)
    if arguments.fix or arguments.dry_run:
        checkup = _repair(checkup, checks, options, variables, arguments)
    return exit_status(findings=is_grave(worst(checkup.findings)))


def _undisturbed() -> dict[str, str]:
    """The variables a program would get. A library that they force upon Python, and that kills it, would kill us too:
    start again without it."""
    if sys.argv[1:2] == ["doctor"]:
        own_imports.start_again([own_imports.PRELOAD])
        own_imports.check()
    return own_imports.variables_of_program()


def _options(arguments: argparse.Namespace) -> Options:
    from faultlens.target_env.target import Options

    return Options(
        python=output.python_for(arguments),
        cpu=arguments.cpu,
        ops=_paths(arguments.op, "Name the library that tf.load_op_library would load."),
        models=_paths(arguments.model, "Name a SavedModel folder, a .keras or .h5 file, or a checkpoint.", prefix=True),
        folders=_folders(arguments.save_to),
        deep=arguments.deep,
    )


def _paths(names: list[str], advice: str, *, prefix: bool = False) -> tuple[Path, ...]:
    """`prefix`: a checkpoint is named by the beginning of its files' names."""
    for name in names:
        path = Path(name)
        if not os.path.lexists(path) and not (prefix and Path(f"{name}.index").exists()):
            raise FaultlensError(f"There is no {name}.", advice)
    return tuple(map(Path, names))


def _folders(names: list[str]) -> tuple[Path, ...]:
    """They may not be there yet."""
    for path in map(Path, names):
        if path.exists() and not path.is_dir():
            raise FaultlensError(f"{path} is not a folder.", "Name the folder that the program saves to.")
    return tuple(map(Path, names))


def _show(checkup: Checkup, verbose: bool) -> None:
    from faultlens.report.checkup import render

    render(checkup, console=output.console(sys.stdout), verbose=verbose)


def _list(checks: tuple[Check, ...], json_target: str | None, verbose: bool) -> int:
    from rich.text import Text

    from faultlens.report.page import GAP, LABEL, QUIET, print_line, words, wrap

    if json_target:
        import msgspec

        records = [
            {"check": check.name, "looks_at": check.looks_at, "causes": check.causes, "explanation": check.explanation}
            for check in checks
        ]
        output.write_bytes(msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n", json_target)
    if json_target == "-":
        return FINE
    console = output.console(sys.stdout)
    room = max((len(check.name) for check in checks), default=0)
    for check in checks:
        head = Text.assemble("  ", (check.name.ljust(room + GAP), LABEL))
        for line in wrap(words(check.looks_at), max(console.width - len(head), 30)):
            print_line(console, Text.assemble(head, line))
            head = Text(" " * len(head))
        for row in check.explanation.splitlines() if verbose else ():
            print_line(console, Text.assemble("    ", words(row, QUIET)))
    return FINE


# ------------------------------------------------------------------------------------------------- repair


def _repair(
    checkup: Checkup,
    checks: tuple[Check, ...],
    options: Options,
    variables: dict[str, str],
    arguments: argparse.Namespace,
) -> Checkup:
    """Offers each repair once; after one was made the environment is looked at anew, since it may have cured others."""
    from faultlens.doctor.examine import examine
    from faultlens.doctor.repair import apply, in_shell, repairable
    from faultlens.target_env.target import meet

    if not repairable(checkup):
        _say("There is nothing here that faultlens can repair by itself.")
    offered = set()
    while waiting := [finding for finding in repairable(checkup) if finding.repair not in offered]:
        repair = waiting[0].repair
        assert repair is not None
        offered.add(repair)
        _say("", f"To repair: {waiting[0].title}", f"  $ {in_shell(repair.commands)}")
        if arguments.dry_run:
            _say("and to take it back:", f"  $ {in_shell(repair.undo)}")
            continue
        if not _agreed(waiting[0], arguments):
            continue
        sys.stdout.flush()
        if failed := apply(repair, variables):
            # Others may still be possible.
            _say(f"That failed with exit status {failed}. If it changed something, this takes it back:")
            _say(f"  $ {in_shell(repair.undo)}")
            continue
        _say("Done. To take it back:", f"  $ {in_shell(repair.undo)}")
        checkup = examine(meet(options, variables), checks)
        left = f"{len(checkup.findings)} left (faultlens doctor shows them)" if checkup.findings else "nothing left"
        _say(f"Looked again: {left}.")
    return checkup


def _agreed(finding: Finding, arguments: argparse.Namespace) -> bool:
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise FaultlensError(f"Cannot ask whether to repair {finding.check}: there is no terminal.", "Add --yes.")
    try:
        return input("Do it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _say(*lines: str) -> None:
    """To stderr: standard output may be JSON."""
    from faultlens.text.safe import one_line

    for line in lines:
        print(one_line(line, 4096), file=sys.stderr, flush=True)
