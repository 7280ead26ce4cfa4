"""`faultlens op test`: fuzzes the ops of a library in processes that may die of it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultlens.cli import output
from faultlens.cli.exit_codes import exit_status
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.custom_op.fuzz.session import Reference

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Fuzz custom ops: what an op registers is read from TensorFlow itself, then it is called with inputs that nobody
thought of, in processes that may die of it. What kills it is made as small as it can be and shown as a few lines of
Python. LIB is a library of ops, or a source, which is built first.

  faultlens op test my_op.so                            30 seconds, all ops of the library
  faultlens op test my_op.cc --op MyOp --seconds 300    one op, and more inputs
  faultlens op test my_op.so --reference ref:my_op      and its results against a function of arrays
  faultlens op test _my_op.so --import my_op            and its gradient, which that module registers

Exit status: 0 nothing wrong, 1 findings, 2 it could not be tested.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "test",
        help="fuzz ops: call them with inputs that nobody thought of",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("library", metavar="LIB", help="a library of ops, or its source")
    parser.add_argument("--op", metavar="NAME", action="append", default=[], help="only this op; may be repeated")
    parser.add_argument(
        "--seconds", type=output.positive_seconds, default=30.0, metavar="N", help="for trying inputs (default: 30)"
    )
    parser.add_argument(
        "--inputs", type=output.positive_number, metavar="N", help="try so many inputs, if there is time"
    )
    parser.add_argument(
        "--seed", type=output.whole_number, default=0, metavar="N", help="other inputs with another seed (default: 0)"
    )
    parser.add_argument(
        "--reference", metavar="MODULE:FUNCTION", help="gives the right results, from arrays as arrays of NumPy"
    )
    parser.add_argument(
        "--import",
        dest="modules",
        metavar="MODULE",
        action="append",
        default=[],
        help="your Python module that registers gradients of these ops; may be repeated",
    )
    parser.add_argument(
        "--time-limit",
        type=output.positive_seconds,
        default=10.0,
        metavar="SECONDS",
        help="for one input (default: 10)",
    )
    parser.add_argument(
        "--memory-limit", type=output.positive_number, default=2048, metavar="MIB", help="for one input (default: 2048)"
    )
    parser.add_argument("--no-fence", action="store_true", help="do not put tensors between forbidden pages")
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment with TensorFlow")
    parser.add_argument("-v", "--verbose", action="store_true", help="show notes as well")
    parser.add_argument("--json", metavar="PATH", help="write what was found as JSON; - is standard output")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.custom_op.building import target_of
    from faultlens.custom_op.fuzz.campaign import Effort
    from faultlens.custom_op.fuzz.session import Limits, Modules
    from faultlens.custom_op.fuzz.testing import Options, fuzz
    from faultlens.report import op_findings

    subject = Path(arguments.library)
    if not subject.is_file():
        raise FaultlensError(f"There is no file {subject}.", "Name a library of ops, or its source.")
    options = Options(
        only=tuple(arguments.op),
        effort=Effort(arguments.seconds, arguments.inputs, arguments.seed, _reference(arguments.reference)),
        limits=Limits(arguments.time_limit, arguments.memory_limit << 20),
        fenced=not arguments.no_fence,
        modules=Modules(os.getcwd(), tuple(arguments.modules)),
    )
    python = output.python_for(arguments)
    with output.Status() as status:
        found = fuzz(subject, target_of(python), options, status.tell)
    if arguments.json:
        output.write_record(found, arguments.json, output.SECRET)
    if arguments.json != "-":
        op_findings.render(found, console=output.console(sys.stdout), verbose=arguments.verbose)
    return exit_status(findings=found.is_grave, unseen=not found.tried)


def _reference(named: str | None) -> Reference | None:
    from faultlens.custom_op.fuzz.session import Reference

    if named is None:
        return None
    module, colon, function = named.partition(":")
    if not (module and colon and function):
        raise FaultlensError(f"{named} names no function.", "Write MODULE:FUNCTION.")
    return Reference(os.getcwd(), module, function)
