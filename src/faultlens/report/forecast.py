"""A forecast of memory as text: what each phase takes and what it is made of, the limit, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from faultlens.records.forecast import MOST_BATCH, Advice, Forecast, Parts, Peak
from faultlens.report import page
from faultlens.report.page import ALARM, OWN, QUIET, Section, fixed, print_section, words
from faultlens.text.quantities import count, duration
from faultlens.text.sizes import in_words as size

_STYLES = {"fits": "bold green", "does not fit": ALARM, "too close to tell": page.WARNING}
_SHORT = {"fits": "fits", "does not fit": "does not fit", "too close to tell": "too close"}
_NAMES = ("weights", "gradients", "optimizer", "activations", "input pipeline", "runtime")
_SHADES = "█▓▒░▚·"
_BAR = 60
_FIRST, _COLUMN = 15, 13


def render(found: Forecast, console: Console, verbose: bool = False) -> None:
    verdict = found.training.verdict or ""
    told = (
        f"training with a batch of {found.batch:,} needs {size(found.training.peak)} ({_range(found.training)})"
        f" of {size(found.bound.limit)}"
    )
    page.print_title(console, verdict, _STYLES.get(verdict, OWN), told, found.bound.what)
    print_section(console, Section("model", [words(_model(found))]))
    print_section(console, Section("memory", list(_table(found))))
    print_section(console, Section("", list(_bar(found))))
    print_section(console, Section("largest", [_largest(found)]))
    print_section(console, Section("note", [words(each) for each in found.notes]))
    print_section(console, Section("change", [line for each in found.advice for line in _advised(each)]))
    if verbose:
        print_section(console, Section("runs", [words(line) for line in _runs(found)]))
    if verbose or found.bound.gpu:  # how rough that is must not be missed
        print_section(console, Section("assumed", [words(each) for each in found.assumptions]))
    runs = count(len(found.points), "measured phase")
    closing = f"{runs} in {duration(found.seconds)}, of which imports took {duration(found.import_seconds)}."
    page.print_line(console, Text())
    page.print_line(console, words(closing if verbose else f"{closing} -v shows them.", QUIET))


def _range(peak: Peak) -> str:
    """ "533 to 682 MiB", "0.9 to 1.2 GiB"."""
    low, high = size(peak.low), size(peak.high)
    number, unit = low.split(" ")
    return f"{number if high.endswith(unit) else low} to {high}"


def _model(found: Forecast) -> str:
    told = [found.model]
    told += [f"{count(found.parameters, 'parameter')}"] if found.parameters is not None else []
    told += [f"optimizer {found.optimizer}"] if found.optimizer else []
    told += [f"saved as {found.saving.format}"] if found.saving else []
    told += [f"{name} {version}" for name, version in found.versions.items()]
    return ", ".join(told)


def _table(found: Forecast) -> Iterator[Text]:
    """Phases side by side, what they are made of below each other."""
    saving = found.saving
    phases = {
        "training": found.training,
        "evaluation": found.evaluation,
        "inference": found.inference,
        "saving": saving.peak if saving else None,
    }
    known = {name: peak for name, peak in phases.items() if peak is not None}
    peaks = list(known.values())
    yield _row("", [words(_cell(name), QUIET) for name in known])
    for index, name in enumerate(_NAMES):
        yield _row(name, [_amount(_sizes(peak.parts)[index]) for peak in peaks])
    yield _row("together", [words(_cell(size(peak.peak)), OWN) for peak in peaks])
    yield _row("at most", [words(_cell(size(peak.high))) for peak in peaks])
    verdicts = [(_SHORT.get(peak.verdict or "", ""), _STYLES.get(peak.verdict or "", "")) for peak in peaks]
    yield _row("", [words(_cell(text), style) for text, style in verdicts])
    if any(peak.how != "measured" for peak in peaks):
        yield _row("", [words(_cell(peak.how), QUIET) for peak in peaks])


def _row(name: str, cells: Sequence[Text]) -> Text:
    return fixed(words(name.ljust(_FIRST), QUIET), *cells)


def _amount(part: int) -> Text:
    return words(_cell(size(part))) if part else words(_cell("–"), QUIET)


def _cell(text: str) -> str:
    return text.rjust(_COLUMN)


def _bar(found: Forecast) -> Iterator[Text]:
    """The training against its limit; each part in its own shade."""
    sizes, limit = _sizes(found.training.parts), found.bound.limit
    cell = max(sum(sizes), min(limit, 2 * sum(sizes)), 1) / _BAR
    bar = "".join(shade * round(part / cell) for shade, part in zip(_SHADES, sizes, strict=True))
    place = round(limit / cell)
    legend = [f"{shade} {name}" for shade, name, part in zip(_SHADES, _NAMES, sizes, strict=True) if part >= cell / 2]
    if place <= _BAR:
        bar = f"{bar[:place].ljust(place)}│{bar[place:]}"
        legend.append("│ limit")
    yield fixed(words(bar))
    yield words("  ".join(legend), QUIET)


def _sizes(parts: Parts) -> tuple[int, ...]:
    return (
        parts.weights, parts.gradients, parts.optimizer, parts.activations, parts.input_pipeline, parts.runtime,
    )  # fmt: skip


def _largest(found: Forecast) -> Text:
    if found.largest_batch is None:
        return words(f"no batch size fits {size(found.bound.limit)}", ALARM)
    if found.largest_batch >= MOST_BATCH:
        return words(f"every batch that was looked at fits {size(found.bound.limit)}, up to {MOST_BATCH:,}")
    told = f"a batch of {found.largest_batch:,} is the largest that fits {size(found.bound.limit)}"
    tried = any(point.batch >= found.largest_batch and point.phase == "training" for point in found.points)
    return words(told if tried else f"{told}, but was not tried: forecast it with --batch {found.largest_batch}")


def _advised(each: Advice) -> Iterator[Text]:
    gain = f"−{size(each.gain)}".ljust(_COLUMN - 2)
    fits = words(", then it fits", _STYLES["fits"]) if each.fits else Text()
    yield Text.assemble(words(gain), words(each.title, OWN), fits)
    how = "estimated" if each.how == "reckoned" else each.how
    yield Text.assemble(" " * len(gain), words(f"{how}: {each.detail}", QUIET))


def _runs(found: Forecast) -> Iterator[str]:
    for point in found.points:
        ended = f", stopped: too much {point.stopped}" if point.stopped else ""
        pace = f", {duration(point.seconds_per_step)} a step" if point.seconds_per_step is not None else ""
        steps = count(point.steps, "step")
        yield f"{point.phase} with a batch of {point.batch:,}: {size(point.peak)} after {steps}{pace}{ended}"
