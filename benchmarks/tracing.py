"""What it costs to remember the lines of graphs and the progress: while tracing, and while running."""

from __future__ import annotations

import json
import statistics
import subprocess

import measure as m
from measure import AGAIN, FAULTLENS, PLAIN, PROGRAMS, Bench, Table

ROUNDS = 9
TRACE_LIMIT = 1.01
HEADER = ("", "without", "with", "more", "noise (plain against plain)", "target", "")
TEXT = """\
In one process under `faultlens run`, in turns: the training step of a Keras model is traced with our functions in
place, with TensorFlow's own put back, and so again. CPU time of the process. Then a function that was traced is called,
and Keras is told that a step begins, which leaves a mark of progress."""


def run(bench: Bench) -> Table:
    table = Table("Tracing", TEXT, HEADER)
    numbers = {}
    for model in ("resnet", "transformer"):
        numbers = table.data[model] = _numbers(bench, model)
        what = f"tracing {model}, {numbers['nodes']:,} nodes"
        table.rows.append(_row(what, numbers["trace"], "s", 1, TRACE_LIMIT))
    table.rows.append(_row("calling a traced function", numbers["call"], "µs", 1e6))
    marked, unmarked = (statistics.median(numbers[name]) for name in ("marked", "unmarked"))
    more = f"{(marked - unmarked) * 1e9:.0f} ns"
    table.rows.append(
        ["beginning a step in Keras", f"{unmarked * 1e9:.0f} ns", f"{marked * 1e9:.0f} ns", more, "", "none", ""]
    )
    return table


def _row(what: str, samples: m.Samples, unit: str, scale: float, limit: float | None = None) -> list[str]:
    cost = m.ratio(samples, "agent")
    return [
        what,
        m.median_text(samples[PLAIN], unit, scale),
        m.median_text(samples["agent"], unit, scale),
        m.percent(cost),
        m.percent(m.ratio(samples, AGAIN)),
        f"{limit - 1:+.0%}" if limit else "none",
        m.verdict(cost, limit) if limit else "",
    ]


def _numbers(bench: Bench, model: str) -> dict:
    command = [*FAULTLENS, "run", "--quiet", "--", bench.python, PROGRAMS / "tracing.py", model]
    done = subprocess.run(
        [*command, str(bench.rounds(ROUNDS))], env=m.clean_environment(), capture_output=True, text=True
    )
    try:
        return json.loads(done.stderr.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise RuntimeError(f"{command}: status {done.returncode}\n{done.stderr[-2000:]}") from error
