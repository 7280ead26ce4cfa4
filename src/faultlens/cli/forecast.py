"""`faultlens forecast`: how much memory a model will take, and whether that fits."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from faultlens.cli import output
from faultlens.cli.exit_codes import exit_status
from faultlens.errors import FaultlensError

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

FORMATS = (".keras", ".h5", ".weights.h5", "savedmodel", "checkpoint")

DESCRIPTION = """\
Say how much memory training, evaluating, using and saving a Keras model will take, and whether that fits. FUNCTION
builds and returns the model. It is trained for a few steps with small batches, in processes that are stopped long
before the memory of this machine runs out; nothing is kept of them.

  faultlens forecast train.py:build_model --batch 256
  faultlens forecast train.py:build_model --batch 256 --data-spec 'image=float32[224,224,3] y=int32[]<1000 shuffle=5000'
  faultlens forecast train.py:build_model --batch 256 --data train.py:make_dataset --limit 8GiB

Exit status: 0 it fits, 1 it does not, or that is too close to tell, 2 no forecast could be made.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "forecast",
        help="say how much memory a model will take, and whether it fits",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("function", metavar="FILE:FUNCTION", help="builds and returns the model")
    parser.add_argument("--batch", type=output.positive_number, required=True, metavar="N", help="examples in a batch")
    parser.add_argument("--data-spec", metavar="TEXT", default="", help="shapes of one example, and buffers")
    parser.add_argument("--data", metavar="FILE:FUNCTION", help="gets the batch size, returns the dataset to train on")
    parser.add_argument("--optimizer", metavar="NAME", help="another than the model was compiled with")
    parser.add_argument("--save", choices=FORMATS, default=".keras", help="how it is saved (default: .keras)")
    parser.add_argument(
        "--limit", default="auto", metavar="LIMIT", help="auto, a size (8GiB), gpu, gpu:1 or a card (A100-80GB)"
    )
    parser.add_argument(
        "--memory", type=_size, metavar="SIZE", help="that the runs may take (default: most of what is left here)"
    )
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment to run the model in")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every run")
    parser.add_argument("--json", metavar="PATH", help="write the forecast as JSON; - is standard output")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    from faultlens.forecasting.account import Options
    from faultlens.forecasting.bound import bound_of
    from faultlens.forecasting.crashed import CrashedError
    from faultlens.forecasting.data_spec import parse
    from faultlens.forecasting.forecast import forecast
    from faultlens.forecasting.subject import function_of, subject_of
    from faultlens.report.forecast import render
    from faultlens.store import folder
    from faultlens.target_env.interpreter import find_interpreter

    subject = subject_of(arguments.function)
    options = Options(
        batch=arguments.batch,
        python=find_interpreter(output.python_for(arguments), dict(os.environ)).executable,
        bound=bound_of(arguments.limit),
        optimizer=arguments.optimizer,
        save=arguments.save,
        spec=parse(arguments.data_spec),
        data=function_of(arguments.data, given=1) if arguments.data else None,
        memory=arguments.memory,
    )
    try:
        with output.Status() as status:
            found = forecast(subject, options, status.tell)
    except CrashedError as error:
        from faultlens.doctor.aftermath import with_findings

        report = with_findings(error.report)
        if error.stored and report is not error.report:
            folder.update(error.stored, report)
        output.render(report, sys.stderr, verbose=arguments.verbose, stored=error.stored)
        raise FaultlensError(f"No forecast could be made: {error.what} died.") from error
    output.present(found, arguments, render)
    peaks = [found.training, found.saving.peak if found.saving else None]
    return exit_status(findings=any(peak is not None and peak.verdict != "fits" for peak in peaks))


def _size(text: str) -> int:
    from faultlens.text.sizes import from_words

    value = from_words(text)
    if not value:
        raise argparse.ArgumentTypeError("must be a size, as 4GiB")
    return value
