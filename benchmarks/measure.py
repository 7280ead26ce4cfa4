"""Side by side: variants run in turns and in random order, and their noise is measured along with them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
EXAMPLE = HERE.parent / "examples" / "train.py"

FAULTLENS = [sys.executable, "-m", "faultlens"]
PLAIN, AGAIN = "plain", "plain again"
WAYS = {
    PLAIN: [],
    AGAIN: [],  # the same as plain: their difference is the noise
    "agent": [*FAULTLENS, "run", "--quiet", "--capture=agent", "--"],
    "ptrace": [*FAULTLENS, "run", "--quiet", "--capture=ptrace", "--"],
}
RESAMPLES = 2000
CONFIDENCE = 0.95
CHUNK = 1 << 20

Command = Sequence[str | Path]
Samples = Mapping[str, Sequence[float]]  # by variant, one of each round


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    python: str  # an interpreter with TensorFlow
    quick: bool
    folder: Path  # for files that are not kept
    native: Path  # the library made of programs/native.cc
    stamp: Path  # and that of programs/stamp.c

    def rounds(self, full: int) -> int:
        return 2 if self.quick else full

    def scaled(self, amount: int) -> int:
        return max(amount // 10, 1) if self.quick else amount


@dataclass(frozen=True)
class Estimate:
    """The median, and where it lies with 95% confidence."""

    value: float
    low: float
    high: float


@dataclass
class Table:
    title: str
    text: str  # how it was measured
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)  # the samples, for results.json


def interleave(rounds: int, variants: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
    """The results of every variant, one a round; every round has its own random order."""
    order = random.Random(0)
    results: dict[str, list[Any]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name in order.sample(list(variants), len(variants)):
            results[name].append(variants[name]())
    return results


def column(results: Mapping[str, Iterable[Mapping[str, float]]], name: str) -> dict[str, list[float]]:
    return {variant: [each[name] for each in samples] for variant, samples in results.items()}


def ratio(samples: Samples, variant: str, base: str = PLAIN) -> Estimate:
    return estimate([a / b for a, b in zip(samples[variant], samples[base], strict=True)])


def difference(samples: Samples, variant: str, base: str = PLAIN) -> Estimate:
    return estimate([a - b for a, b in zip(samples[variant], samples[base], strict=True)])


def estimate(values: Sequence[float]) -> Estimate:
    """Bootstrap: the median of what the same rounds might have been."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Estimate(statistics.median(values), medians[tail], medians[-1 - tail])


def verdict(measured: Estimate | float, limit: float) -> str:
    """Whether the target is met, and whether the noise leaves that open."""
    if not isinstance(measured, Estimate):
        measured = Estimate(measured, measured, measured)
    if measured.high <= limit:
        return "met"
    if measured.low > limit:
        return "**missed**"
    return "met, within the noise" if measured.value <= limit else "**missed**, within the noise"


# ----------------------------------------------------------------------------------------- processes


def clean_environment(**more: str | Path) -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **{name: str(value) for name, value in more.items()}}


def seconds_of(command: Command, **more: str | Path) -> float:
    """Wall time of a command whose output and exit status do not matter."""
    start = time.perf_counter()
    subprocess.run(
        command,
        env=clean_environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return time.perf_counter() - start


def numbers_of(command: Command) -> dict[str, float]:
    """The numbers in the last line that a program of ours prints to stderr, and its wall time."""
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile() as said,  # a pipe would fill up while stdout is read
        subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, stderr=said) as process,
    ):
        assert process.stdout
        while os.read(process.stdout.fileno(), CHUNK):
            pass  # a pipe read as fast as possible
        process.wait()
        said.seek(0)
        words = said.read().decode(errors="replace")
    wall = time.perf_counter() - start
    try:
        return {**json.loads(words.splitlines()[-1]), "wall": wall}
    except (IndexError, ValueError) as error:
        raise RuntimeError(f"{command}: status {process.returncode}\n{words[-2000:]}") from error


def side_by_side(bench: Bench, rounds: int, program: Command) -> dict[str, list[dict[str, float]]]:
    """The numbers of a program, run in all ways."""
    ways = {way: partial(numbers_of, [*prefix, *program]) for way, prefix in WAYS.items()}
    return interleave(bench.rounds(rounds), ways)


def rounds_of_turns(rounds: int, ways: Mapping[str, Command], parts: int) -> dict[str, list[dict[str, float]]]:
    """Several times anew: where a program's memory happens to lie counts, too."""
    results = [in_turns(ways, parts) for _ in range(rounds)]
    return {way: [each[way] for each in results] for way in ways}


def in_turns(ways: Mapping[str, Command], parts: int) -> dict[str, dict[str, float]]:
    """The numbers of a program that works in parts, run in all ways at once, a part of each in turn: what slows the
    machine down for longer than a part slows all of them. For each way they are those of the plain run, times the
    median of what each of its parts took against the plain part beside it."""
    order = random.Random(0)
    with contextlib.ExitStack() as stack:
        running = {way: stack.enter_context(_InTurns(command)) for way, command in ways.items()}
        for _ in range(parts):
            for way in order.sample(list(running), len(running)):
                running[way].work()
        measured = {way: program.numbers() for way, program in running.items()}
    plain = measured[PLAIN]
    return {
        way: {
            name: statistics.median(plain[name])
            * statistics.median(own / beside for own, beside in zip(values, plain[name], strict=True))
            for name, values in numbers.items()
        }
        for way, numbers in measured.items()
    }


class _InTurns:
    """A program that does one part for each line it gets, and says so; at its end it prints the numbers of all."""

    def __init__(self, command: Command) -> None:
        self._command = command

    def __enter__(self) -> _InTurns:
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
        )
        return self

    def work(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise RuntimeError(f"{self._command}: {self._words()}")

    def numbers(self) -> dict[str, list[float]]:
        self._process.wait()
        numbers: dict[str, list[float]] = json.loads(self._words().splitlines()[-1])
        return numbers

    def _words(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()


# ---------------------------------------------------------------------------------------------- text


def percent(measured: Estimate) -> str:
    """A ratio as what it costs."""
    return f"{measured.value - 1:+.1%} ({measured.low - 1:+.1%} … {measured.high - 1:+.1%})"


def span(measured: Estimate, unit: str = "s", scale: float = 1.0, digits: int = 2) -> str:
    numbers = measured.value, measured.low, measured.high
    value, low, high = (f"{number * scale:.{digits}f}" for number in numbers)
    return f"{value} {unit} ({low} … {high})"


def median_text(values: Sequence[float], unit: str, scale: float, digits: int = 2) -> str:
    return f"{statistics.median(values) * scale:.{digits}f} {unit}"


OVERHEAD_HEADER = ("", PLAIN, "agent", "ptrace", "noise (plain against plain)", "target", "agent", "ptrace")


def overhead_row(
    what: str, samples: Samples, unit: str, scale: float, limit: float | None = None, digits: int = 2
) -> list[str]:
    """A row of a table with OVERHEAD_HEADER: ratios to the plain run."""
    costs = {way: ratio(samples, way) for way in ("agent", "ptrace")}
    return [
        what,
        median_text(samples[PLAIN], unit, scale, digits),
        *(percent(costs[way]) for way in ("agent", "ptrace")),
        percent(ratio(samples, AGAIN)),
        f"{limit - 1:+.0%}" if limit else "none",
        *(verdict(costs[way], limit) if limit else "" for way in ("agent", "ptrace")),
    ]
