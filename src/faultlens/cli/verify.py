"""`faultlens verify`: whether saved models are whole, and which save would be loaded."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from faultlens.cli import output
from faultlens.cli.exit_codes import exit_status
from faultlens.errors import FaultlensError

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Say whether saved models are whole: every checksum is compared and every value read, in processes that may write
nowhere and end when they take too long. PATH is a .keras, .h5 or .tflite file, a SavedModel folder, the prefix of a
checkpoint, or a folder in which all saves are looked for.

  faultlens verify model.keras            this file, and the generations that faultlens.save kept of it
  faultlens verify runs                   every save below this folder
  faultlens verify --load model.keras     and load it with the Keras of the active environment

Exit status: 0 all are whole, 1 something is damaged, 2 something could not be looked at.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "verify",
        help="say whether saved models are whole",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a saved model, or a folder of them")
    parser.add_argument("--load", action="store_true", help="load it for real, with TensorFlow or Keras; takes seconds")
    parser.add_argument(
        "--time-limit",
        type=output.positive_seconds,
        metavar="SECONDS",
        help="for each look at one save (default: 60, more for large ones and for --load)",
    )
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment to read and load with")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what was looked at, and where it lies")
    parser.add_argument("--json", metavar="PATH", help="write what was found as JSON; - is standard output")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.report.verified import render
    from faultlens.verify.verify import Options, verify

    python, kerases = _python(arguments)
    options = Options(python, arguments.load, arguments.time_limit, kerases)
    with output.Status() as status:
        found = verify(arguments.paths, options, status.tell)
    output.present(found, arguments, render)
    sys.stdout.flush()
    for problem in found.problems:
        print(f"faultlens: {problem}", file=sys.stderr)
    return exit_status(findings=found.damaged, unseen=found.untold)


def _python(arguments: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    """And the versions of its Keras. Without one that runs, all is looked at that can be without."""
    from faultlens.target_env.distributions import installed
    from faultlens.target_env.interpreter import find_interpreter

    try:
        interpreter = find_interpreter(output.python_for(arguments), dict(os.environ))
    except FaultlensError:
        if arguments.python is not None:
            raise
        return sys.executable, ()
    kerases = tuple(each.version for each in installed(interpreter.path) if each.key in ("keras", "tf-keras"))
    return interpreter.executable, kerases
