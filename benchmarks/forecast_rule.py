"""How does the peak move with the batch and with the steps? What the rule of the forecast was made from."""

from __future__ import annotations

import ast
from typing import Any

from measure import PROGRAMS, Bench, Table

from faultlens.forecasting.estimate import HORIZON, Series, estimate
from faultlens.forecasting.forecast import FEW_STEPS, MANY_STEPS
from faultlens.forecasting.runs import Runs

MODELS = PROGRAMS / "forecast_rule_models.py"
SHARES = (4, 2, 1)  # of the batch
MEMORY, SECONDS = 6 << 30, 600.0
MB = 1e6
HEADER = (
    "model",
    "batch",
    "steps 1, 3, 10, 30: a quarter, MB",
    "the whole batch, MB",
    "as shipped",
    "from smaller ones",
)
TEXT = f"""\
Eight models, none of which is in the table above, at a quarter, a half and the whole of a batch: the peak after 1, 3,
10 and {HORIZON} steps, and the error of the forecast against the last. As shipped: {MANY_STEPS} steps with a quarter
and {FEW_STEPS} with the whole batch. From smaller ones: a quarter and a half, as if there were no room for more."""


def run(bench: Bench) -> Table:
    shown = Table("Peaks by batch and step", TEXT, HEADER)
    with Runs(bench.python, [str(PROGRAMS)]) as runs:
        runs.wait_until_ready()
        for name, batch in list(_batches().items())[: 2 if bench.quick else None]:
            measured = {share: _measured(runs, name, batch // share) for share in SHARES}
            shown.rows.append(_row(name, batch, measured))
    return shown


def _batches() -> dict[str, int]:
    """Read without importing TensorFlow."""
    tree = ast.parse(MODELS.read_text())
    value = next(
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BATCHES"
    )
    found: dict[str, int] = ast.literal_eval(value)
    return found


def _measured(runs: Runs, name: str, batch: int) -> dict[str, Any]:
    request = {"file": str(MODELS), "function": name, "batch": batch, "steps": HORIZON, "phases": ["train"]}
    rest: dict[str, Any] = {"phase_seconds": SECONDS, "spec": {}, "pipeline": {}, "optimizer": None, "data": None}
    ran = runs.run({**request, **rest}, MEMORY, SECONDS)
    if not ran.result:
        raise RuntimeError(f"{name} {batch}: {ran}")
    return ran.result


def _row(name: str, batch: int, measured: dict[int, dict[str, Any]]) -> list[str]:
    peaks = {share: result["train"]["peaks"] for share, result in measured.items()}
    base, truth = min(result["built"] for result in measured.values()), peaks[1][-1]

    def error(*runs: tuple[int, int]) -> str:
        series = [Series(batch // share, tuple(peaks[share][:steps])) for share, steps in runs]
        return f"{estimate(series, batch, base).peak / truth - 1:+.1%}"

    shipped, smaller = error((4, MANY_STEPS), (1, FEW_STEPS)), error((4, MANY_STEPS), (2, FEW_STEPS))
    return [name, str(batch), _by_step(peaks[4]), _by_step(peaks[1]), shipped, smaller]


def _by_step(peaks: list[int]) -> str:
    return ", ".join(f"{peaks[min(step, len(peaks)) - 1] / MB:.0f}" for step in (1, 3, 10, HORIZON))
