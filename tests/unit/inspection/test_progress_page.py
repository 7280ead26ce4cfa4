"""Progress, written as the program does it and read as the supervisor does."""

from __future__ import annotations

import gc
import random
import threading
import time

import pytest

from faultlens.guest import layout
from faultlens.guest.progress import Progress
from faultlens.inspection.progress import read_loop, read_progress
from faultlens.records import crash


class Callbacks:
    """An object whose end is the end of its loop."""


@pytest.fixture
def page() -> bytearray:
    return bytearray(layout.PAGE_BYTES)


@pytest.fixture
def program(page: bytearray) -> Progress:
    return Progress(page)


def read(page: bytearray) -> crash.Progress:
    now = time.time()
    progress = read_progress(bytes(page), now - 60, now)
    assert progress is not None
    return progress


def test_nothing_happened(page: bytearray) -> None:
    assert read_progress(bytes(page), 0, time.time()) is None
    assert read_progress(b"", 0, time.time()) is None


def test_training(program: Progress, page: bytearray) -> None:
    program.begin("train", steps=100)
    program.epoch(3, 10)
    program.step("train", 42)
    progress = read(page)
    assert (progress.phase, progress.epoch, progress.epochs) == ("train", 3, 10)
    assert (progress.step, progress.steps) == (42, 100)
    assert [(mark.kind, mark.text) for mark in progress.marks] == [("train", ""), ("epoch", "epoch 3")]
    assert 59 < progress.marks[0].seconds <= progress.marks[1].seconds < 61
    assert progress.seconds_before is not None and progress.seconds_before < 1
    program.end("train", mark="end")
    ended = read(page)
    assert (ended.phase, ended.epoch, ended.step) == (None, None, None)
    assert (ended.marks[-1].kind, ended.marks[-1].text) == ("end", "train")


def test_steps_of_all_loops_are_added_up(program: Progress, page: bytearray) -> None:
    assert read_loop(b"") is read_loop(bytes(page)) is None
    program.begin("train", steps=3)
    for epoch in (1, 2):
        program.epoch(epoch, 2)
        for step in (1, 2, 3):
            program.step("train", step)
        program.begin("evaluate")
        program.step("evaluate", 1)
        program.step("evaluate", 5)  # Keras executes four at once
        program.end("evaluate", mark="end")
    assert read_loop(bytes(page)) == ("train", 2, 2, 3, 3, 2 * (3 + 5))
    program.end("train", mark="end")
    program.taking(1)
    assert read_loop(bytes(page)) == ("data", 0, 0, 0, 1, 17)


def test_an_evaluation_within_training(program: Progress, page: bytearray) -> None:
    program.begin("train", steps=9)
    program.epoch(1, 2)
    program.step("train", 9)
    program.begin("evaluate")
    program.step("evaluate", 4)
    inner = read(page)
    assert (inner.phase, inner.epoch, inner.step, inner.steps) == ("evaluate", 1, 4, None)
    program.end("evaluate", mark="end")
    outer = read(page)
    assert (outer.phase, outer.epoch, outer.step, outer.steps) == ("train", 1, 9, 9)


def test_a_save_within_training(program: Progress, page: bytearray) -> None:
    program.begin("train")
    program.epoch(2, 2)
    program.step("train", 7)
    program.begin("save", "/models/a.keras")
    saving = read(page)
    assert (saving.phase, saving.detail, saving.epoch, saving.step) == ("save", "/models/a.keras", 2, 7)
    assert program.inside("save")
    program.end("save", mark="saved")
    saved = read(page)
    assert (saved.phase, saved.detail, saved.step) == ("train", None, 7)
    assert [(mark.kind, mark.text) for mark in saved.marks[-2:]] == [
        ("save", "/models/a.keras"),
        ("saved", "/models/a.keras"),
    ]


def test_of_a_long_path_the_end_is_kept(program: Progress, page: bytearray) -> None:
    program.begin("save", "/very" * 1000 + "/long/ä.keras")
    progress = read(page)
    assert progress.detail is not None and len(progress.detail.encode()) == layout.DETAIL_BYTES
    assert progress.detail.startswith("...") and progress.detail.endswith("/long/ä.keras")
    assert progress.marks[0].text.endswith("/long/ä.keras")


def test_a_loop_that_was_left_by_an_exception(program: Progress, page: bytearray) -> None:
    callbacks = Callbacks()
    program.begin("train", owner=callbacks)
    program.epoch(1, 1)
    program.begin("evaluate", owner=callbacks)
    del callbacks
    gc.collect()
    assert read(page).phase is None
    program.taking(3)
    assert (read(page).phase, read(page).step) == ("data", 3)


def test_an_evaluation_that_was_left_by_an_exception(program: Progress, page: bytearray) -> None:
    program.begin("train")
    program.begin("evaluate")
    program.step("train", 5)
    assert (read(page).phase, read(page).step) == ("train", 5)
    program.begin("save", "x")
    program.epoch(2, 3)
    assert (read(page).phase, read(page).epoch) == ("train", 2)


def test_elements_of_a_dataset(program: Progress, page: bytearray) -> None:
    program.taking(12)
    assert (read(page).phase, read(page).step) == ("data", 12)
    program.taken()
    assert (read(page).phase, read(page).step) == (None, 12)
    program.begin("train")
    program.taking(13)
    assert read(page).phase == "train"


def test_other_threads_are_not_followed(program: Progress, page: bytearray) -> None:
    program.begin("train")
    program.step("train", 1)

    def elsewhere() -> None:
        program.begin("predict")
        program.step("predict", 99)
        program.step("train", 99)
        program.epoch(99, 99)
        program.end("train")
        program.end("predict")

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert (read(page).phase, read(page).step, read(page).epoch) == ("train", 1, None)


def test_short_traces_leave_no_mark(program: Progress, page: bytearray) -> None:
    program.begin("trace", "step", mark=False)
    assert (read(page).phase, read(page).detail) == ("trace", "step")
    program.end("trace")
    assert read_progress(bytes(page), 0, time.time()) is None
    program.begin("trace", "step", mark=False)
    program._open[-1].began -= 10**9
    program.end("trace")
    assert [(mark.kind, mark.text) for mark in read(page).marks] == [("trace", "step")]


def test_the_latest_marks_are_kept(program: Progress, page: bytearray) -> None:
    program.begin("train")
    for epoch in range(1, 101):
        program.epoch(epoch, 100)
    marks = read(page).marks
    assert [mark.text for mark in marks] == [f"epoch {epoch}" for epoch in range(73, 101)]


def test_marks_of_another_time_are_left_out(program: Progress, page: bytearray) -> None:
    program.begin("train")
    program.epoch(1, 1)
    now = time.time()
    assert read_progress(bytes(page), now + 100, now + 200) is None
    assert read_progress(bytes(page), now - 200, now - 100) is None


def test_hostile_pages(program: Progress, page: bytearray) -> None:
    program.begin("train")
    program.epoch(1, 1)
    rng = random.Random(0)
    now = time.time()
    for _ in range(2000):
        damaged = bytearray(page)
        for _ in range(rng.randrange(1, 200)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        progress = read_progress(bytes(damaged), now - 60, now)
        assert progress is None or len(progress.marks) <= layout.MARKS
        for number in (progress.epoch, progress.epochs, progress.step, progress.steps) if progress else ():
            assert number is None or number > 0
    read_progress(rng.randbytes(layout.PAGE_BYTES), now - 60, now)
    read_progress(b"\xff" * layout.PAGE_BYTES, now - 60, now)
