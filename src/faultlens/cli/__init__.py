"""The command line: one file per verb; arguments in, one call, one reporter out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from faultlens import __version__
from faultlens.cli import causes, doctor, explain, forecast, op, repro, run, scan, show, verify
from faultlens.errors import FaultlensError

CANNOT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    _open_streams()
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(run.with_default(words))
    try:
        return int(options.handler(options))
    except FaultlensError as error:
        print(f"faultlens: {error}", file=sys.stderr)
        return CANNOT
    except BrokenPipeError:
        _drop_output()  # its reader has gone
        return CANNOT
    except OSError as error:
        _drop_output()
        where = f" ({error.filename})" if error.filename else ""
        print(f"faultlens: Cannot go on: {error.strerror or error}{where}.", file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        return 130


def _open_streams() -> None:
    """A caller may have closed them."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _drop_output() -> None:
    """What is still to be written cannot be, and Python must not try at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="faultlens",
        description="The crash doctor for TensorFlow programs and the native Python stack under them.",
        epilog="Try: faultlens run train.py",
    )
    parser.add_argument("--version", action="version", version=f"faultlens {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in (run, explain, show, repro, verify, scan, forecast, op, doctor, causes):
        verb.register(verbs)
    return parser
