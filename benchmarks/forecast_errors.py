"""What do the errors of the forecast and of its rivals come to?"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from measure import Table

LIMITS = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25)  # times the truth
MEDIAN, TAIL, RIGHT = 0.05, 0.15, 0.95  # the targets
MB = 1e6
STEPS = "20"  # after so many the truth is read
HEADER = ("model", "batch", "truth, MB", "forecast, MB", "error", "stated, MB", "analytic", "XLA", "steps' worth")
TEXT = """\
Peak of the anonymous memory of a plain program that trains a Keras model for 20 steps, against what was said before:
`faultlens forecast`; the usual analytic sum (weights, gradients, optimizer, outputs of all layers); the buffer
assignment of XLA for the same step. Both of these on top of what a process has that only imported TensorFlow.
Whether it fits is asked for limits of {limits} times the truth; a wrong "fits" is unsafe, "too close to tell" is no
verdict. The last column is the time of the forecast without imports, in steps of the same run: {paces}. Measured in
several sittings, while other programs ran on the same cores. None of these models was used to make the rule.

{summaries}"""


class Case(NamedTuple):
    """One model at one batch size: the truth, and what was said."""

    model: str
    batch: int
    truth: int
    said: dict[str, int]  # the peak, by who said it
    low: dict[str, int]  # … and between which it is to be
    high: dict[str, int]
    steps: float | None = None  # that could have been made while it was forecast

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
    low, high, steps = dict(said), dict(said), None
    if "training" in forecast:
        training = forecast["training"]
        said["forecast"], high["forecast"], low["forecast"] = (training[each] for each in ("peak", "high", "low"))
        pace = [
            each["seconds_per_step"]
            for each in forecast["points"]
            if each["batch"] == batch and each["phase"] == "training"
        ]
        steps = (forecast["seconds"] - forecast["import_seconds"]) / pace[0] if pace else None
    return Case(model, batch, truth["peak_by_step"][STEPS], said, low, high, steps)


def table(results: dict[str, dict[str, Any]]) -> Table:
    measured = cases(results)
    limits = ", ".join(f"{limit:g}" for limit in LIMITS)
    summaries = "\n".join(f"- {summary(who, measured)}" for who in ("forecast", "analytic", "XLA"))
    text = TEXT.format(limits=limits, summaries=summaries, paces=_paces(measured))
    shown = Table("Forecast of memory", text, HEADER, data=_data(measured))
    shown.rows.extend(_row(case) for case in measured)
    return shown


def _paces(measured: Iterable[Case]) -> str:
    known = sorted(case.steps for case in measured if case.steps)
    return f"{known[0]:.0f} to {known[-1]:.0f}, median {statistics.median(known):.0f}" if known else "not known"


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
        f"{case.low['forecast'] / MB:.0f} … {case.high['forecast'] / MB:.0f}" if forecast else "",
        _percent(case.error("analytic")),
        _percent(case.error("XLA")),
        f"{case.steps:.0f}" if case.steps else "",
    ]


def summary(who: str, measured: Sequence[Case]) -> str:
    errors = [error for case in measured if (error := case.error(who)) is not None]
    if not errors:
        return f"{who}: said nothing"
    sizes = sorted(abs(error) for error in errors)
    told = verdicts(who, measured)
    decided = told.right + len(told.unsafe) + told.careful
    within = f"; the truth is within what was stated in {_inside(measured):.0%}" if who == "forecast" else ""
    return (
        f"{who}: {len(errors)} of {len(measured)} said; error median {statistics.median(sizes):.1%}, 95th percentile "
        f"{percentile(sizes, 0.95):.1%}, worst {sizes[-1]:.1%}, mean {statistics.mean(errors):+.1%}{within}; verdicts "
        f"right {told.right} of {decided} ({told.right / max(decided, 1):.1%}), wrong and unsafe {len(told.unsafe)}, "
        f"wrong and safe {told.careful}, too close to tell {told.open}"
        + (f" (unsafe: {', '.join(told.unsafe[:12])})" if told.unsafe and who == "forecast" else "")
    )


class Verdicts(NamedTuple):
    right: int
    unsafe: list[str]  # said to fit, and does not
    careful: int  # said not to fit, and does
    open: int  # too close to tell


def verdicts(who: str, measured: Iterable[Case]) -> Verdicts:
    right, unsafe, careful, undecided = 0, [], 0, 0
    for case in measured:
        for limit in LIMITS if who in case.high else ():
            room = limit * case.truth
            if case.high[who] <= room:
                right, unsafe = (
                    (right + 1, unsafe) if limit >= 1 else (right, [*unsafe, f"{case.model} {case.batch} at {limit:g}"])
                )
            elif case.low[who] > room:
                right, careful = (right + 1, careful) if limit < 1 else (right, careful + 1)
            else:
                undecided += 1
    return Verdicts(right, unsafe, careful, undecided)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    return ordered[min(int(-(-share * len(ordered) // 1)), len(ordered)) - 1]


def _inside(measured: Iterable[Case]) -> float:
    stated = [case for case in measured if "forecast" in case.low]
    return statistics.mean(case.low["forecast"] <= case.truth <= case.high["forecast"] for case in stated)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"
