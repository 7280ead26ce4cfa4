"""Will it fit? A few short runs of a model in processes that may die, and the forecast that follows from them."""

from __future__ import annotations

import time

from faultlens.errors import FaultlensError
from faultlens.forecasting import advice, bound, judge
from faultlens.forecasting.account import Options
from faultlens.forecasting.measuring import Measuring, Tell
from faultlens.forecasting.runs import Runs
from faultlens.forecasting.subject import Subject, with_function
from faultlens.records.forecast import Forecast
from faultlens.text.sizes import MIB, in_words

KEPT_FREE = 0.15  # of the memory that is left: the runs leave it alone
LEAST_MEMORY = 256 * MIB


def forecast(subject: Subject, options: Options, tell: Tell) -> Forecast:
    started = time.monotonic()
    memory = _memory(options)
    tell(f"importing TensorFlow with {options.python}")
    if options.data:
        subject = with_function(subject, options.data)
    with Runs(options.python, subject.path, subject.functions) as runs:
        runs.wait_until_ready()
        measuring = Measuring(subject, options, memory, runs, tell)
        measuring.train()
        measuring.infer()
        found = judge.forecast(measuring.account())
        found = advice.with_advice(found, measuring)
    return judge.timed(found, time.monotonic() - started, runs.import_seconds, runs.versions)


def _memory(options: Options) -> int:
    """That the runs may take."""
    memory = options.memory or round(bound.here().limit * (1 - KEPT_FREE))
    if memory < LEAST_MEMORY:
        least = f"at least {in_words(LEAST_MEMORY)} must be free"
        raise FaultlensError(f"{in_words(memory)} of memory are too little to measure in: {least}.", "Free some first.")
    return memory
