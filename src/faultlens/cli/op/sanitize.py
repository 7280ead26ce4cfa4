"""`faultlens op sanitize`: the line of the op that damages memory, while the program runs."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from faultlens.cli import output
from faultlens.cli.exit_codes import exit_status

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Builds the op again with checks in it, runs the program with that build in the place of its own, and names the lines
that damage memory, race, leak or leave outputs unwritten. TensorFlow stays as it is.

  faultlens op sanitize my_op.cc -- python train.py          AddressSanitizer, UBSan, unwritten outputs: one run
  faultlens op sanitize my_op.cc --tsan -- python train.py   data races
  faultlens op sanitize libmy_op.so -- python train.py       with the source if it is found, else checks of the heap
  faultlens op sanitize my_op.cc                             no program: the ops are called with inputs of ours
  faultlens op sanitize kernels.cu -- python train.py        NVIDIA's compute-sanitizer, on a machine with a GPU
"""
# From the cheapest to the dearest; spelled out here so that the help needs no heavy modules.
SANITIZERS = {
    "malloc": "checks of the C library's allocator; needs no source",
    "fence": "some blocks between guards, as `faultlens run --hunt` does; needs no source",
    "gwp-asan": "an allocator that watches some of its blocks (scudo with GWP-ASan); needs no source",
    "asan": "AddressSanitizer: overflows, use after free, leaks",
    "ubsan": "UndefinedBehaviorSanitizer: overflow of integers, bad shifts, indices beyond arrays",
    "outputs": "elements of outputs that the op never writes",
    "tsan": "ThreadSanitizer: data races",
    "valgrind": "valgrind's memcheck: minutes; the last resort",
    "memcheck": "CUDA kernels: memory out of bounds, misaligned, leaked; calls of CUDA that fail",
    "racecheck": "CUDA kernels: threads that race for shared memory",
    "initcheck": "CUDA kernels: GPU memory that is read before it was written",
    "synccheck": "CUDA kernels: barriers that not all threads reach",
}


def register(verbs: Any) -> None:
    # The class is that of the parser above it, unless it is changed for this one.
    usual, verbs._parser_class = verbs._parser_class, _Parser
    parser = verbs.add_parser(
        "sanitize",
        help="the line of an op that damages memory, races, leaks or leaves its output unwritten",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="faultlens op sanitize PATH… [options] [-- COMMAND …]",
    )
    verbs._parser_class = usual
    parser.add_argument("paths", nargs="+", metavar="PATH", help="sources, the library, or both")
    for name, says in SANITIZERS.items():
        parser.add_argument(f"--{name}", dest="sanitizers", action="append_const", const=name, help=says)
    parser.add_argument("--all", action="store_true", help="all of them, as far as they are there")
    parser.add_argument("--python", metavar="PYTHON", help="the Python that has TensorFlow (default: the program's)")
    parser.add_argument("--flags", metavar="WORDS", default="", help="for the compiler: '-Iinclude -DFAST'")
    parser.add_argument(
        "--time-limit", type=output.positive_seconds, metavar="SECONDS", help="end the program after so long"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="install what is missing without asking")
    parser.add_argument("-v", "--verbose", action="store_true", help="show notes, too")
    parser.add_argument("--json", metavar="PATH", help="write the findings as JSON; - is standard output")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.custom_op.sanitize.sanitizing import Options, sanitize
    from faultlens.report.op_findings import render

    options = Options(
        python=arguments.python,
        flags=tuple(shlex.split(arguments.flags)),
        time_limit=arguments.time_limit,
        consent=(lambda _: True) if arguments.yes else _ask,
        tell=_say,
    )
    sanitizers = tuple(SANITIZERS) if arguments.all else tuple(dict.fromkeys(arguments.sanitizers or ()))
    found = sanitize([Path(path) for path in arguments.paths], arguments.command, sanitizers, options=options)
    sys.stdout.flush()
    output.present(found, arguments, render)
    return exit_status(findings=found.is_grave, unseen=found.coverage == "insufficient")


class _Parser(argparse.ArgumentParser):
    """Takes what stands behind `--` for the program, which argparse would add to the paths."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(args or ())
        place = words.index("--") if "--" in words else len(words)
        parsed, rest = super().parse_known_args(words[:place], namespace)
        parsed.command = words[place + 1 :]
        return parsed, rest


def _ask(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"faultlens: {text}", file=sys.stderr, flush=True)
