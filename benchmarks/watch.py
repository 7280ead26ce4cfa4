"""What the watch of `faultlens run` costs: a training beside it, and the CPU time of faultlens itself."""

from __future__ import annotations

import subprocess
import time

import training
from measure import (
    AGAIN,
    FAULTLENS,
    PLAIN,
    PROGRAMS,
    Bench,
    Table,
    clean_environment,
    column,
    median_text,
    percent,
    ratio,
    verdict,
)
from supervisor import cpu_seconds

EPOCHS = 40
WARM_S, OWN_S = 20, 60  # the start is not the watch
LIMIT = 1.005
WATCHED, STOPPING = "watched", "--stop-before-oom"
RUN = [*FAULTLENS, "run", "--quiet", "--no-save"]
WATCHES = {WATCHED: [*RUN, "--"], STOPPING: [*RUN, STOPPING, "--"]}
HEADER = ("", PLAIN, *WATCHES, "noise (plain against plain)", "target", *WATCHES)
TEXT = """\
Steps of `model.fit` of a small CNN, as under [Training](#training): alone, below `faultlens run`, and below
`faultlens run --stop-before-oom`. The last row is the CPU time of faultlens itself while it watches this training, in
{seconds} s after the first {warm} s, of one core: no noise of the training is in it."""


def run(bench: Bench) -> Table:
    results = training.measured(bench, {PLAIN: [], AGAIN: [], **WATCHES}, EPOCHS, 1)
    table = Table("The watch", TEXT.format(seconds=bench.scaled(OWN_S), warm=WARM_S), HEADER)
    for what, name in (("a step of Keras fit", "fit"), ("its CPU time", "fit_cpu")):
        samples = table.data[name] = column(results, name)
        costs = [ratio(samples, way) for way in WATCHES]
        row = [what, median_text(samples[PLAIN], "ms", 1e3), *map(percent, costs), percent(ratio(samples, AGAIN))]
        table.rows.append([*row, f"{LIMIT - 1:+.1%}", *(verdict(cost, LIMIT) for cost in costs)])
    endless = [bench.python, PROGRAMS / "training.py", "100000", "1"]
    own = {way: _own_share(bench, [*prefix, *endless]) for way, prefix in WATCHES.items()}
    table.data["own"] = own
    met = [verdict(share, LIMIT - 1) for share in own.values()]
    shares = [f"{share:.2%}" for share in own.values()]
    table.rows.append(["CPU time of faultlens", "", *shares, "", f"{LIMIT - 1:.1%}", *met])
    return table


def _own_share(bench: Bench, command: list[object]) -> float:
    seconds = bench.scaled(OWN_S)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [str(word) for word in command], env=clean_environment(), stdin=quiet, stdout=quiet, stderr=quiet
    ) as process:
        time.sleep(WARM_S)
        before, began = cpu_seconds(process.pid), time.perf_counter()
        time.sleep(seconds)
        share = (cpu_seconds(process.pid) - before) / (time.perf_counter() - began)
        process.terminate()
    return share
