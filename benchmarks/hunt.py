"""What `faultlens run --hunt` costs training."""

from __future__ import annotations

import training
from measure import AGAIN, FAULTLENS, PLAIN, Bench, Table, column, median_text, percent, ratio, verdict

LIMIT = 1.03
HUNT, MALLOC = "--hunt", "--hunt=fence,malloc"
WAYS = {
    PLAIN: [],
    AGAIN: [],  # the same as plain: their difference is the noise
    HUNT: [*FAULTLENS, "run", "--quiet", HUNT, "--"],
    MALLOC: [*FAULTLENS, "run", "--quiet", MALLOC, "--"],
}
TEXT = """\
The same program as under "Training". `--hunt` puts some blocks between guards, `--hunt=fence,malloc` adds glibc's own
checks, which are no part of the target. Blocks are fenced at so many a second of the clock; a program that waits for
its turn saves them up, so that more are fenced here while it works than in a training of its own."""
# What is shown of the program's numbers: name, unit, scale, limit of the ratio.
SHOWN = {
    "a step of Keras fit": ("fit", "ms", 1e3, LIMIT),
    "its CPU time": ("fit_cpu", "ms", 1e3, LIMIT),
    "an eager operation": ("eager", "µs", 1e6, LIMIT),
    "its CPU time ": ("eager_cpu", "µs", 1e6, LIMIT),
}


def run(bench: Bench) -> Table:
    results = training.measured(bench, WAYS)
    table = Table("Hunting", TEXT, ("", PLAIN, HUNT, MALLOC, "noise (plain against plain)", "target", HUNT))
    for what, (name, unit, scale, limit) in SHOWN.items():
        samples = table.data[name] = column(results, name)
        hunting = ratio(samples, HUNT)
        table.rows.append(
            [
                what.strip(),
                median_text(samples[PLAIN], unit, scale),
                percent(hunting),
                percent(ratio(samples, MALLOC)),
                percent(ratio(samples, AGAIN)),
                f"{limit - 1:+.0%}" if limit else "none",
                verdict(hunting, limit) if limit else "",
            ]
        )
    return table
