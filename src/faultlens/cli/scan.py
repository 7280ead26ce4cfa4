"""`faultlens scan`: what is corrupt, truncated, inconsistent or deadly in training data."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from faultlens.cli import output
from faultlens.cli.exit_codes import exit_status
from faultlens.errors import FaultlensError
from faultlens.text.file_names import to_text

if TYPE_CHECKING:
    from faultlens.data.decode import Decoding
    from faultlens.data.quarantine.quarantine import Quarantined
    from faultlens.data.scanning import Engine, Progress
    from faultlens.records.scan import Scan

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

TELL_S = 0.2

DESCRIPTION = """\
Find what is corrupt, truncated, inconsistent or deadly in training data: file, offset, record and reason. PATH is a
file, a folder, a pattern, or an address that fsspec knows (s3://…, gs://…, https://…).

Formats: TFRecord (plain, GZIP, ZLIB) with the Examples and images in it; JPEG, PNG, GIF, BMP, WebP; .npy, .npz; HDF5;
Parquet, Arrow; CSV; tar (WebDataset), zip; .keras, checkpoints, .tflite.

  faultlens scan data                         checksums, framing, structure: at the speed of the disk
  faultlens scan data --pixels                and every image is decoded in full, strictly
  faultlens scan data --decode                and TensorFlow decodes every record, in processes that may die of it
  faultlens scan data --using train:parse     and your own map function does
  faultlens scan data --quarantine clean      and clean copies of the bad files are written
  faultlens scan data --resume                goes on after an interruption; only new and changed files are read

Exit status: 0 nothing wrong, 1 findings, 2 something could not be looked at; with --strict, 2 also where some check was
not made.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "scan",
        help="find what is bad in training data",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or addresses of training data")
    parser.add_argument(
        "--pixels", action="store_true", help="decode images in full, strictly, with libjpeg-turbo, Pillow"
    )
    parser.add_argument("--decode", action="store_true", help="decode with TensorFlow, in processes that may die of it")
    parser.add_argument(
        "--using", metavar="MODULE:FUNCTION", help="decode with this function instead; implies --decode"
    )
    parser.add_argument("--schema", metavar="PATH", help="a JSON file that says what the data must be like")
    parser.add_argument("--quarantine", metavar="DIR", help="write clean copies of files with errors there")
    parser.add_argument("--resume", action="store_true", help="take over what an earlier scan of the same has found")
    parser.add_argument("--strict", action="store_true", help="exit status 2 unless every check was made")
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="where the work is done")
    parser.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster (default: as ray.init finds it)")
    parser.add_argument(
        "--workers", type=output.positive_number, metavar="N", help="processes (default: one for each CPU)"
    )
    parser.add_argument(
        "--time-limit",
        type=output.positive_seconds,
        default=20.0,
        metavar="SECONDS",
        help="for decoding one item (default: 20)",
    )
    parser.add_argument(
        "--memory-limit",
        type=output.positive_number,
        default=2048,
        metavar="MIB",
        help="for decoding one item (default: 2048)",
    )
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment to decode with")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every finding, and notes")
    parser.add_argument("--json", metavar="PATH", help="write what was found as JSON; - is standard output")
    parser.set_defaults(handler=handle, is_apart=True)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.data.aggregate import schema
    from faultlens.data.engine.pool import PATIENCE_S, Job
    from faultlens.data.look import Wanted
    from faultlens.data.scanning import Options, scan

    _check_arguments(arguments)
    decoding = _decoding(arguments)
    patience = max(PATIENCE_S, 3 * arguments.time_limit)
    options = Options(
        job=Job(wanted=Wanted(pixels=arguments.pixels), decoding=decoding, patience=patience),
        schema=schema.read(Path(arguments.schema)) if arguments.schema else None,
        resume=arguments.resume,
    )
    status = _Status()
    try:
        found = scan(arguments.paths, options, _engine(arguments), status.tell)
        if arguments.quarantine:
            from faultlens.data.quarantine.quarantine import quarantine

            quarantined = quarantine(found, Path(arguments.quarantine), status.tell)
    except KeyboardInterrupt:
        status.clear()
        print("faultlens: Interrupted. The same command with --resume goes on from here.", file=sys.stderr)
        raise
    finally:
        status.clear()
    _show(found, arguments)
    if arguments.quarantine:
        _tell_copies(quarantined, sys.stderr if arguments.json == "-" else sys.stdout)
    sys.stdout.flush()
    for problem in found.problems:
        print(f"faultlens: {problem}", file=sys.stderr)
    return _exit_status(found, arguments.strict)


def _exit_status(found: Scan, strict: bool) -> int:
    unseen = bool(found.problems or found.unseen or (strict and found.unchecked))
    return exit_status(findings=found.is_grave, unseen=unseen)


def _show(found: Scan, arguments: argparse.Namespace) -> None:
    if arguments.json != "-":
        from faultlens.report.scanned import render

        render(
            found,
            console=output.console(sys.stdout),
            verbose=arguments.verbose,
            written=arguments.json,
            cleaned=bool(arguments.quarantine),
        )
    if arguments.json:
        output.write_record(found, arguments.json, output.SECRET)


def _check_arguments(arguments: argparse.Namespace) -> None:
    """What cannot be done is told before hours of reading."""
    if arguments.pixels and arguments.engine == "local":
        from faultlens.data.images import pixels
        from faultlens.data.missing import EXTRA

        if pixels.missing("JPEG") and pixels.missing("PNG"):
            raise FaultlensError("--pixels decodes with simplejpeg and Pillow, which are not installed.", f"{EXTRA}.")
    if arguments.address and arguments.engine != "ray":
        raise FaultlensError("--address is that of a Ray cluster.", "Give --engine ray with it.")
    if arguments.json and arguments.json != "-":
        _check_target(Path(arguments.json))
    if arguments.quarantine:
        from faultlens.data.engine.plan import check_roots
        from faultlens.data.quarantine.names import check_apart

        check_roots(arguments.paths)
        check_apart(Path(arguments.quarantine), arguments.paths)
        _make_folder(Path(arguments.quarantine))


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise FaultlensError(f"{path} is a folder.", "Name a file for --json.")
    if not path.parent.is_dir():
        raise FaultlensError(f"There is no folder {path.parent} for {path.name}.", "Make it, or name another file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FaultlensError(f"{path} cannot be written to.", "Name another file for --json.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FaultlensError(f"Cannot make the folder {folder}: {error.strerror}.", "Name another folder.") from error
    if not os.access(folder, os.W_OK):
        raise FaultlensError(f"{folder} cannot be written to.", "Name another folder.")


def _tell_copies(done: Quarantined, stream: TextIO) -> None:
    without = len(done.files) - done.copies
    copies = "1 clean copy" if done.copies == 1 else f"{done.copies:,} clean copies"
    told = f"{copies} in {done.folder}, listed in quarantine.json."
    if without:
        told += f" Nothing could be kept of {'1 file' if without == 1 else f'{without:,} files'}."
    print(told, file=stream)


def _engine(arguments: argparse.Namespace) -> Engine:
    if arguments.engine == "ray":
        from faultlens.data.engine.on_ray import RayEngine

        return RayEngine(arguments.address)
    from faultlens.data.scanning import LocalEngine

    return LocalEngine(arguments.workers)


def _decoding(arguments: argparse.Namespace) -> Decoding | None:
    if not (arguments.decode or arguments.using):
        return None
    if arguments.using and not all(part for part in arguments.using.partition(":")):
        raise FaultlensError(f"{arguments.using} names no function.", "Write MODULE:FUNCTION, as in train:parse.")
    from faultlens.data.decode import Decoding
    from faultlens.target_env.interpreter import find_interpreter

    python = find_interpreter(output.python_for(arguments), dict(os.environ)).executable
    return Decoding(
        python=to_text(python),
        using=arguments.using,
        folder=to_text(os.getcwd()),
        seconds=arguments.time_limit,
        memory=arguments.memory_limit << 20,
    )


class _Status(output.Status):
    """Tells how far it is, a few times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._told = 0.0

    def tell(self, what: str | Progress) -> None:
        from faultlens.report.scanned import progress

        if isinstance(what, str):
            super().tell(what)
        elif time.monotonic() - self._told > TELL_S:
            self._told = time.monotonic()
            super().tell(progress(*what))
