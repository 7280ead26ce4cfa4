"""The rule for growth without end, over recorded timelines of programs that leak and of healthy ones."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from faultlens.records.crash import GrowthKind, Sample
from faultlens.supervise.growth import trends
from faultlens.text.sizes import KIB, MIB

FOLDER = Path(__file__).parent / "timelines"  # written by tools/record_timelines.py
LEAKING = sorted(path.stem for path in (FOLDER / "leaking").glob("*.csv"))
HEALTHY = sorted(path.stem for path in (FOLDER / "healthy").glob("*.csv"))
# They grow for a while, and only a look at them tells that it will end (test_retainers.py).
GROW_FOR_A_WHILE = {"cache", "replay", "preallocated"}


def recorded(kind: str, name: str) -> list[Sample]:
    with open(FOLDER / kind / f"{name}.csv", newline="") as file:
        rows = [{key: float(value) if value else None for key, value in row.items()} for row in csv.DictReader(file)]
    return [
        Sample(
            seconds=row["seconds"] or 0.0,
            steps=_whole(row["steps"]),
            rss_anonymous=_whole(row["anonymous_kib"], KIB),
            rss_shared=_whole(row["shared_kib"], KIB),
            open_files=_whole(row["files"]),
            threads=_whole(row["threads"]),
        )
        for row in rows
    ]


def _whole(value: float | None, unit: int = 1) -> int | None:
    return None if value is None else int(value) * unit


def seen(samples: list[Sample]) -> set[GrowthKind]:
    """Everything that was suspected at any time."""
    return {trend.what for end in range(6, len(samples) + 1) for trend in trends(samples[:end])}


@pytest.mark.parametrize("name", LEAKING)
def test_leaks_are_found(name: str) -> None:
    expected = {"open files", "threads", "shared memory"} if name == "counted" else {"memory"}
    assert expected <= seen(recorded("leaking", name))


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_raise_no_suspicion(name: str) -> None:
    assert seen(recorded("healthy", name)) <= ({"memory"} if name in GROW_FOR_A_WHILE else set())


# ------------------------------------------------------------------------------------ courses made up


def course(value: Callable[[int], float], steps: int = 600) -> list[Sample]:
    """Ten samples a second, ten steps between two."""
    return [
        Sample(seconds=number / 10, rss_anonymous=int(200 * MIB + value(number * 10)), steps=number * 10 or None)
        for number in range(steps // 10)
    ]


def test_the_rate() -> None:
    (trend,) = trends(course(lambda step: step * 300 * KIB))
    assert trend.per_step == pytest.approx(300 * KIB)
    assert trend.per_second == pytest.approx(300 * KIB * 100)
    assert trend.steps and 300 < trend.steps < 400


def test_noise_hides_no_leak() -> None:
    (trend,) = trends(course(lambda step: step * 300 * KIB + (step // 10 % 3) * 20 * MIB))
    assert trend.per_step == pytest.approx(300 * KIB, rel=0.1)


def test_what_begins_late_is_found() -> None:
    assert trends(course(lambda step: max(step - 1200, 0) * 300 * KIB, 2000))


@pytest.mark.parametrize(
    "value",
    [
        lambda step: 300 * MIB * (step > 300),
        lambda step: 100 * MIB * (step // 200),
        lambda step: 30 * MIB * step**0.3,
        lambda step: (step % 100) * MIB,
        lambda step: step * KIB,
        lambda step: min(step, 400) * 300 * KIB,
        lambda step: -step * 100 * KIB,
    ],
    ids=["one step up", "few steps up", "slowing down", "saw teeth", "too little", "filled", "falling"],
)
def test_what_is_no_leak(value: Callable[[int], float]) -> None:
    assert not trends(course(value))


def test_without_steps_half_a_minute_is_needed() -> None:
    def without_steps(seconds: int) -> list[Sample]:
        return [Sample(seconds=at / 2, rss_anonymous=at * MIB) for at in range(2 * seconds)]

    assert not trends(without_steps(40))
    assert trends(without_steps(50))
