"""`faultlens op`: custom C++ ops, from the first line to the sanitizer."""

from __future__ import annotations

import argparse
from typing import Any

from faultlens.cli.op import check, new, sanitize, test

DESCRIPTION = """\
Custom C++ ops that cannot crash anybody.

  faultlens op new fast_norm                          a correct, tested skeleton of an op
  faultlens op check my_op.cc                         read the source (or the library) and say what will crash
  faultlens op test my_op.so                          fuzz the op: call it with inputs that nobody thought of
  faultlens op sanitize my_op.cc -- python train.py   the line of the op that damages memory
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "op",
        help="write, check, fuzz and sanitize custom C++ ops",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own = parser.add_subparsers(metavar="VERB", required=True)
    for verb in (new, check, test, sanitize):
        verb.register(own)
