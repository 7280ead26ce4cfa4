"""`faultlens op new`: a correct, tested skeleton of a custom op."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from faultlens.cli.exit_codes import FINE

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Write the skeleton of a custom op: an op that works, with a check of everything that it is given, shape function, CPU
and CUDA kernel, Python function with gradient, tests, Makefile and CMakeLists.txt.

  faultlens op new fast_norm
  cd fast_norm && make test
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "new",
        help="write a correct, tested skeleton of an op",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="of the op: fast_norm or FastNorm")
    parser.add_argument("--to", metavar="DIR", help="where it is written (default: a folder of that name)")
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment it is for")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.custom_op.new import write
    from faultlens.target_env.target import Options, meet

    file_name, op, _ = write.names_of(arguments.name)
    target = meet(Options(python=arguments.python))
    write.check_name_is_free(op, target)
    folder = Path(arguments.to or file_name)
    for path in write.write(arguments.name, folder):
        print(path)
    python = shlex.quote(target.interpreter.executable)
    print(f"\n{op} works as it is. Build and test it:\n  cd {shlex.quote(str(folder))} && make test PYTHON={python}")
    return FINE
