"""The command line: one file per verb; arguments in, one call, one reporter out."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from faultlens import __version__
from faultlens.cli.exit_codes import CANNOT, INTERRUPTED, READER_GONE
from faultlens.errors import FaultlensError
from faultlens.text.safe import make_printable, one_line


def main(arguments: Sequence[str] | None = None) -> int:
    _open_streams()
    try:
        status = _handle(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except FaultlensError as error:
        _complain(str(error))
        return CANNOT
    except ImportError as error:
        if (error.name or "").startswith("faultlens"):
            raise
        from faultlens.cli.own_imports import rescue

        _complain(str(rescue(error)))
        return CANNOT
    except BrokenPipeError:
        _drop_output()  # its reader has gone: `| head`
        return READER_GONE
    except (OSError, RuntimeError, MemoryError) as error:
        return _cannot_go_on(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _handle(words: Sequence[str]) -> int:
    from faultlens.cli import output, own_imports, run

    options = _parser().parse_args(run.with_default(words))
    output.check_targets(options)
    if not options.is_apart:
        own_imports.put_back()
    return int(options.handler(options))


def _cannot_go_on(error: OSError | RuntimeError | MemoryError) -> int:
    from faultlens.cli.shortage import shortage

    if lacking := shortage(error):
        _complain(str(lacking))
        return CANNOT
    if not isinstance(error, OSError):
        raise error
    _drop_output()
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
    _complain(f"Cannot go on: {error.strerror or error}{where}.")
    return CANNOT


def _open_streams() -> None:
    """A caller may have closed them."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _complain(sentence: str) -> None:
    """With names of files in it, which may be of any length and hold anything."""
    with contextlib.suppress(OSError):  # nobody may read it
        print(f"faultlens: {one_line(sentence, 2000)}", file=make_printable(sys.stderr), flush=True)


def _drop_output() -> None:
    """What is still to be written cannot be, and Python must not try at exit."""
    output = sys.stdout.fileno()
    os.close(output)  # first: there may be no other descriptor left
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != output:
        os.dup2(nowhere, output)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as all of faultlens does. The verbs' parsers are of this kind too."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{_sentence(message)} Try: {self.prog} --help")
        sys.exit(CANNOT)


def _sentence(message: str) -> str:
    """Of argparse's "argument --timeout: must be a number"."""
    said = message.removeprefix("argument ")
    if said is not message:
        option, _, rest = said.partition(": ")
        said = f"{option} {rest}" if rest.startswith("must ") else f"{option}: {rest}"
    return f"{said[:1].upper()}{said[1:]}."


def _parser() -> argparse.ArgumentParser:
    from faultlens.cli import causes, doctor, explain, forecast, op, repro, run, scan, show, verify

    parser = _Parser(
        prog="faultlens",
        description="The crash doctor for TensorFlow programs and the native Python stack under them.",
        epilog="Try: faultlens run train.py",
    )
    parser.set_defaults(is_apart=False)
    parser.add_argument("--version", action="version", version=f"faultlens {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in (run, explain, show, repro, verify, scan, forecast, op, doctor, causes):
        verb.register(verbs)
    return parser
