"""A forecast of memory as text: what each phase takes and what it is made of, the limit, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from faultlens.forecasted import Advice, Forecast, Parts, Peak
from faultlens.report.page import ALARM, OWN, QUIET, WARNING, Section, print_line, print_section, print_title, words
from faultlens.report.quantities import count, duration, size

_STYLES = {"fits": "bold green", "does not fit": ALARM, "too close to tell": WARNING}
_NAMES = ("weights", "gradients", "optimizer", "activations", "input pipeline", "runtime")
_SHADES = ("█", "▓", "▒", "░", "▚", "·")
_BAR = 40
_COLUMN = 12


def render(found: Forecast, console: Console, verbose: bool = False) -> None:
    verdict = found.training.verdict or ""
    told = f"training with a batch of {found.batch:,} needs {_about(found.training)} of {size(found.bound.limit)}"
    print_title(console, verdict, _STYLES.get(verdict, OWN), told, found.bound.what)
    print_section(console, Section("model", [words(_model(found))]))
    print_section(console, Section("peaks", list(_peaks(found))))
    print_section(console, Section("made of", list(_made_of(found.training))))
    print_section(console, Section("largest", [_largest(found)]))
    print_section(console, Section("to change", [line for each in found.advice for line in _advised(each)]))
    if verbose:
        print_section(console, Section("runs", [words(line) for line in _runs(found)]))
        print_section(console, Section("assumed", [words(each) for each in found.assumptions]))
    runs = count(len(found.points), "measured phase")
    closing = f"{runs} in {duration(found.seconds)}, of which imports took {duration(found.import_seconds)}."
    print_line(console, Text())
    print_line(console, words(closing if verbose else f"{closing} -v shows them.", QUIET))


def _about(peak: Peak) -> str:
    return f"{size(peak.peak)} ({size(peak.low)} to {size(peak.high)})"


def _model(found: Forecast) -> str:
    told = [found.model]
    told += [f"{count(found.parameters, 'parameter')}"] if found.parameters is not None else []
    told += [f"optimizer {found.optimizer}"] if found.optimizer else []
    told += [f"{name} {version}" for name, version in found.versions.items()]
    return ", ".join(told)


def _peaks(found: Forecast) -> Iterator[Text]:
    saving = found.saving.peak if found.saving else None
    label = f"saving {found.saving.format}" if found.saving else "saving"
    phases = {"training": found.training, "evaluation": found.evaluation, "inference": found.inference, label: saving}
    room = max(map(len, phases)) + 2
    for name, peak in phases.items():
        if peak is None:
            continue
        yield Text.assemble(
            words(name.ljust(room), QUIET),
            words(size(peak.peak).rjust(9), OWN),
            words(f"  {size(peak.low)} to {size(peak.high)}".ljust(28), QUIET),
            words(peak.verdict or "", _STYLES.get(peak.verdict or "", "")),
            words(f", {peak.how}", QUIET),
        )


def _made_of(peak: Peak) -> Iterator[Text]:
    sizes = _sizes(peak.parts)
    whole = max(sum(sizes), 1)
    room = max(map(len, _NAMES)) + 2
    for name, part in zip(_NAMES, sizes, strict=True):
        bar = "█" * round(_BAR * part / whole)
        yield Text.assemble(words(name.ljust(room), QUIET), words(size(part).rjust(9)), f"  {bar}")


def _sizes(parts: Parts) -> tuple[int, ...]:
    return (
        parts.weights, parts.gradients, parts.optimizer, parts.activations, parts.input_pipeline, parts.runtime,
    )  # fmt: skip


def _largest(found: Forecast) -> Text:
    if found.largest_batch is None:
        return words("no batch size fits", ALARM)
    told = f"a batch of {found.largest_batch:,} is the largest that fits {size(found.bound.limit)}"
    measured = any(point.batch >= found.largest_batch and point.phase == "training" for point in found.points)
    return words(told if measured else f"{told}; not tried: forecast it again with --batch {found.largest_batch}")


def _advised(each: Advice) -> Iterator[Text]:
    fits = words("  fits then", _STYLES["fits"]) if each.fits else Text()
    yield Text.assemble(words(f"−{size(each.gain)}".ljust(_COLUMN)), words(each.title, OWN), fits)
    yield Text.assemble(" " * _COLUMN, words(f"{each.detail} ({each.how})", QUIET))


def _runs(found: Forecast) -> Iterator[str]:
    for point in found.points:
        ended = f", stopped: too much {point.stopped}" if point.stopped else ""
        pace = f", {duration(point.seconds_per_step)} a step" if point.seconds_per_step is not None else ""
        steps = count(point.steps, "step")
        yield f"{point.phase} with a batch of {point.batch:,}: {size(point.peak)} after {steps}{pace}{ended}"
