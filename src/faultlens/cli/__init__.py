"""The command line: one file per verb; arguments in, one call, one reporter out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from faultlens import __version__
from faultlens.cli import causes, doctor, explain, forecast, op, repro, run, scan, show, verify
from faultlens.cli.exit_codes import CANNOT, INTERRUPTED
from faultlens.cli.shortage import shortage
from faultlens.errors import FaultlensError
from faultlens.text.safe import make_printable, one_line


def main(arguments: Sequence[str] | None = None) -> int:
    _open_streams()
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(run.with_default(words))
    try:
        return int(options.handler(options))
    except FaultlensError as error:
        _complain(str(error))
        return CANNOT
    except BrokenPipeError:
        _drop_output()  # its reader has gone
        return CANNOT
    except (OSError, RuntimeError, MemoryError) as error:
        if lacking := shortage(error):
            _complain(str(lacking))
            return CANNOT
        if not isinstance(error, OSError):
            raise
        _drop_output()
        where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
        _complain(f"Cannot go on: {error.strerror or error}{where}.")
        return CANNOT
    except KeyboardInterrupt:
        return INTERRUPTED


def _open_streams() -> None:
    """A caller may have closed them."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _complain(sentence: str) -> None:
    """With names of files in it, which may be of any length and hold anything."""
    print(f"faultlens: {one_line(sentence, 2000)}", file=make_printable(sys.stderr))


def _drop_output() -> None:
    """What is still to be written cannot be, and Python must not try at exit."""
    output = sys.stdout.fileno()
    os.close(output)  # first: there may be no other descriptor left
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != output:
        os.dup2(nowhere, output)


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
