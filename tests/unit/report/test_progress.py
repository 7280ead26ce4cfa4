"""How far the program had come: in words, below the bars of its memory, and on the drawing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

import in_flight
import recorded
from faultlens.records.crash import CgroupState, Progress, ProgressMark, Sample, StopRequest
from faultlens.report import timeline
from faultlens.report.progress import Epoch, Span, epochs, landmarks, last_marks, progress_in_words, saves
from faultlens.report.sparkline import sparkline, ticks
from faultlens.report.timeline_chart import WIDTH, Band, chart


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            {"phase": "train", "epoch": 3, "epochs": 10, "step": 1204},
            "in step 1,204 of epoch 3 (of 10), while training",
        ),
        ({"phase": "train", "step": 5, "steps": 20}, "in step 5 (of 20), while training"),
        (
            {"phase": "save", "epoch": 3, "epochs": 10, "step": 1204, "detail": "model.keras"},
            "in step 1,204 of epoch 3 (of 10), while saving model.keras",
        ),
        ({"phase": "save"}, "while saving"),
        ({"phase": "evaluate", "epoch": 1, "step": 2}, "in step 2 of epoch 1, while evaluating"),
        ({"phase": "predict", "step": 2, "detail": "x"}, "in step 2, while predicting"),
        ({"phase": "data", "epoch": 2}, "in epoch 2, while fetching data"),
        ({"phase": "trace", "detail": "train_function"}, "while tracing train_function"),
        ({"phase": "dreams\x1b[2J"}, "in phase dreams"),
        ({"epoch": 2}, "in epoch 2"),
        ({"epochs": 2, "steps": 3}, None),
        ({}, None),
        (
            {"phase": "data", "step": 7, "seconds_before": 58.0},
            "in step 7, while fetching data; no further sign of progress in the 58 s before the end",
        ),
        ({"seconds_before": 2.0}, "no further sign of progress in the 2 s before the end"),
        ({"phase": "train", "seconds_before": 0.3}, "while training"),
        ({"phase": "train", "seconds_before": float("nan")}, "while training"),
        ({"step": -(10**40)}, "in step -10,000,000,…000,000,000"),
    ],
)
def test_words(known: dict[str, Any], words: str | None) -> None:
    assert progress_in_words(Progress(**known)) == words


def test_nothing_recorded() -> None:
    assert progress_in_words(None) is None
    assert epochs(None) == saves(None) == last_marks(None, 3) == []


def test_epochs_and_saves() -> None:
    assert epochs(in_flight.PROGRESS)[:2] == [Epoch(5.0, "1"), Epoch(14.0, "2")]
    assert saves(in_flight.PROGRESS) == [Span(36.5, 38.0, "model.keras")]
    unfinished = replace(in_flight.PROGRESS, marks=in_flight.MARKS[:-1])
    assert saves(unfinished) == [Span(36.5, None, "model.keras")]
    assert last_marks(in_flight.PROGRESS, 2) == [("36.5 s", "save model.keras"), ("38 s", "saved model.keras")]


# ------------------------------------------------------------------------------------------- the bars


def test_a_bar_of_full_height_is_the_limit() -> None:
    assert sparkline([0, 50, 100], 3) == "▁▄█"
    assert sparkline([0, 50, 100], 3, full=200) == "▁▂▄"


@pytest.mark.parametrize(
    ("places", "row"),
    [
        ([], ""),
        ([(0, "1"), (4, "2"), (9, "3")], "│1  │2   │"),
        ([(0, "100"), (4, "101")], "│   │101  "),
        ([(0, "1"), (1, "2"), (2, "3"), (3, "4")], ""),
    ],
)
def test_ticks(places: list[tuple[int, str]], row: str) -> None:
    assert ticks(places, 10) == row


def test_bars_are_as_wide_as_the_time_they_stand_for() -> None:
    early = [Sample(seconds=number / 10, rss_anonymous=1 << 20, steps=0) for number in range(50)]
    late = [Sample(seconds=float(5 + number), rss_anonymous=4 << 20, steps=100 * number) for number in range(6)]
    marks = (ProgressMark(seconds=7.5, kind="save", text="model.keras"),)
    crash = recorded.ended(timeline=(*early, *late), seconds=10.0, progress=Progress(marks=marks))
    asked = StopRequest(seconds=9.5, used=1, limit=2, limit_of="machine")
    limited = replace(crash, cgroup=CgroupState(version=2, path="/", memory_limit=8 << 20), stop_request=asked)
    bars, steps, signs, words = (row.plain for row in timeline.rows(limited, 20))
    assert bars == "▁▁▁▁▁▁▁▁▁▁▄▄▄▄▄▄▄▄▄▄"
    assert steps == "            │ │ │ ││"
    assert signs == "               ▲   !"
    assert words.endswith("█ is the limit of the cgroup, 8 MiB, │ steps, ▲ saves, ! asked to end")


def test_round_steps() -> None:
    samples = tuple(Sample(seconds=float(at), rss_anonymous=1, steps=37 * at) for at in range(30))
    noun, found = landmarks(recorded.ended(timeline=samples))
    assert noun == "step"
    assert [mark.number for mark in found] == ["200", "400", "600", "800", "1,000"]
    assert found[0].start == 6.0


# ---------------------------------------------------------------------------------------- the drawing


def drawn(marks: tuple[ProgressMark, ...], seconds: float = 100.0) -> Any:
    samples = tuple(Sample(seconds=float(second), rss_anonymous=1 << 20) for second in range(int(seconds) + 1))
    crash = recorded.ended(timeline=samples, seconds=seconds, progress=Progress(marks=marks))
    found = chart(crash)
    assert found
    return found


def begun(*seconds: float) -> tuple[ProgressMark, ...]:
    return tuple(ProgressMark(seconds=at, kind="epoch", text=f"epoch {number}") for number, at in enumerate(seconds, 1))


def test_epochs_are_drawn_where_they_began() -> None:
    ticks = drawn(begun(10, 50, 90)).epochs
    assert [(tick.at, tick.x, tick.label) for tick in ticks] == [
        ("10.0%", "100.0", "epoch 1"),
        ("50.0%", "500.0", "2"),
        ("90.0%", "900.0", "3"),
    ]


def test_labels_of_epochs_leave_each_other_room() -> None:
    ticks = drawn(begun(*range(5, 100, 2))).epochs
    assert len(ticks) <= 40
    labelled = [(float(tick.at[:-1]), tick.label) for tick in ticks if tick.label]
    assert len(labelled) > 5
    for (left, label), (right, _) in pairwise(labelled):
        assert right - left > 2.2 * len(label)
    assert all(left + 2.2 * len(label) <= 100 for left, label in labelled)


def test_marks_outside_the_samples_are_not_drawn() -> None:
    odd = (float("nan"), float("-inf"), -3.0, 1e300)
    outside = tuple(ProgressMark(seconds=at, kind=kind, text="x") for at in odd for kind in ("epoch", "save", "saved"))
    found = drawn(outside)
    assert found.epochs == ()
    assert all(0 <= float(band.x) <= WIDTH for band in found.saves)


def test_saves_are_shaded() -> None:
    save, saved = (ProgressMark(seconds=at, kind=kind, text="m.keras") for at, kind in ((20, "save"), (30, "saved")))
    assert drawn((save, saved)).saves == (Band("200.0", "100.0", "saving m.keras"),)
    assert drawn((save,)).saves == (Band("200.0", "800.0", "saving m.keras"),), "it was not finished"
    moment = replace(saved, seconds=20.001)
    assert drawn((save, moment)).saves == (Band("200.0", "3.0", "saving m.keras"),), "it can be seen"
