"""What do the errors of the forecast and of its rivals come to?"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from measure import Table

LIMITS = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25)  # times the truth
MEDIAN, TAIL, RIGHT = 0.05, 0.15, 0.95  # the targets
MB = 1e6
HEADER = (
    "model", "batch", "truth, MB", "forecast, MB", "error", "stated, MB", "analytic", "XLA", "s a step",
    "forecast, steps",
)  # fmt: skip
TEXT = """\
Peak of the anonymous memory of a plain program that trains a Keras model for 30 steps, against what was said before:
`faultlens forecast`; the usual analytic sum (weights, gradients, optimizer, outputs of all layers); the buffer
assignment of XLA for the same step. Both of these on top of what a process has that only imported TensorFlow.
"Fits" is asked for limits of {limits} times the truth; unsafe is a wrong "fits".

{summaries}"""


class Case(NamedTuple):
    """One model at one batch size: the truth, and what was said."""

    model: str
    batch: int
    truth: int
    step_s: float
    said: dict[str, int]  # the peak, by who said it
    high: dict[str, int]  # what has to fit
    low: int | None = None
    seconds: float | None = None  # that the forecast took

    def error(self, who: str) -> float | None:
        return self.said[who] / self.truth - 1 if who in self.said else None


def cases(results: dict[str, dict[str, Any]]) -> list[Case]:
    found = []
    for key, truth in results.items():
        model, batch, kind = key.split()
        if kind == "truth" and "error" not in truth:
            rivals = results.get(f"{model} {batch} rivals", {})
            forecast = results.get(f"{model} {batch} forecast", {})
            found.append(_case(model, int(batch), truth, rivals, forecast))
    return found


def _case(model: str, batch: int, truth: dict[str, Any], rivals: dict[str, Any], forecast: dict[str, Any]) -> Case:
    said: dict[str, int] = {}
    if "analytic" in rivals:
        said["analytic"] = rivals["base"] + sum(rivals["analytic"].values())
    if rivals.get("xla"):
        said["XLA"] = rivals["base"] + rivals["xla"]
    high, low = dict(said), None
    if "error" not in forecast and forecast:
        training = forecast["training"]
        said["forecast"], high["forecast"], low = training["peak"], training["high"], training["low"]
    return Case(model, batch, truth["peak"], truth["step_s"], said, high, low, forecast.get("wall_s"))


def table(results: dict[str, dict[str, Any]]) -> Table:
    measured = cases(results)
    limits = ", ".join(f"{limit:g}" for limit in LIMITS)
    summaries = "\n".join(f"- {summary(who, measured)}" for who in ("forecast", "analytic", "XLA"))
    shown = Table("Forecast of memory", TEXT.format(limits=limits, summaries=summaries), HEADER, data=_data(measured))
    shown.rows.extend(_row(case) for case in measured)
    return shown


def _data(measured: Iterable[Case]) -> dict[str, Any]:
    return {f"{case.model} {case.batch}": case._asdict() for case in measured}


def _row(case: Case) -> list[str]:
    forecast = case.said.get("forecast")
    return [
        case.model,
        str(case.batch),
        f"{case.truth / MB:.0f}",
        f"{forecast / MB:.0f}" if forecast else "",
        _percent(case.error("forecast")),
        f"{(case.low or 0) / MB:.0f} … {case.high['forecast'] / MB:.0f}" if forecast else "",
        _percent(case.error("analytic")),
        _percent(case.error("XLA")),
        f"{case.step_s:.2f}",
        f"{case.seconds / case.step_s:.0f}" if case.seconds else "",
    ]


def summary(who: str, measured: Sequence[Case]) -> str:
    errors = [error for case in measured if (error := case.error(who)) is not None]
    if not errors:
        return f"{who}: said nothing"
    sizes = sorted(abs(error) for error in errors)
    right, unsafe, asked = verdicts(who, measured)
    within = "" if who != "forecast" else f", truth within what was stated {_inside(measured):.0%}"
    return (
        f"{who}: {len(errors)} of {len(measured)} said; error median {statistics.median(sizes):.1%}, 95th percentile "
        f"{percentile(sizes, 0.95):.1%}, worst {sizes[-1]:.1%}, too low {sum(e < 0 for e in errors)} times, mean "
        f"{statistics.mean(errors):+.1%}; verdicts right {right / asked:.1%}, unsafe {len(unsafe)} of {asked}"
        + within
        + (f" ({', '.join(unsafe[:12])})" if unsafe and who == "forecast" else "")
    )


def verdicts(who: str, measured: Iterable[Case]) -> tuple[int, list[str], int]:
    """How many were right, which were wrong on the unsafe side, and how many were asked."""
    right, unsafe, asked = 0, [], 0
    for case in measured:
        for limit in LIMITS:
            if who in case.high:
                fits = case.high[who] <= limit * case.truth
                asked, right = asked + 1, right + (fits == (limit >= 1))
                unsafe += [f"{case.model} {case.batch} at {limit:g}"] if fits and limit < 1 else []
    return right, unsafe, asked


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    return ordered[min(int(-(-share * len(ordered) // 1)), len(ordered)) - 1]


def _inside(measured: Iterable[Case]) -> float:
    stated = [case for case in measured if case.low is not None]
    return statistics.mean(case.low <= case.truth <= case.high["forecast"] for case in stated if case.low is not None)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"
