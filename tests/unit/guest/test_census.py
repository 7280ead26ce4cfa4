"""A program's look at its own memory: what has grown, and who owns it."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faultlens.guest.census import Census
from faultlens.guest.notes import Notes
from faultlens.guest.tally import Tally

FIRST, MORE = 40, 20
kept: list[Any] = []


class Written(Notes):
    """Keeps what would be written."""

    def __init__(self) -> None:
        super().__init__("")
        self.answers: list[dict[str, Any]] = []

    def write(self, *records: dict[str, Any]) -> None:
        self.answers += [record["census"] for record in records]


class Trainer:
    history: dict[int, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.cache: dict[int, Any] = {}


@pytest.fixture(autouse=True)
def empty() -> None:
    kept.clear()
    Trainer.history.clear()


def grown(add: Any) -> list[dict[str, Any]]:
    """What a second look says has grown."""
    census, notes = Census(Tally()), Written()
    for number in range(FIRST):
        add(number)
    census.take(notes, 1)
    for number in range(FIRST, FIRST + MORE):
        add(number)
    census.take(notes, 2)
    first, second = notes.answers
    assert (first["number"], second["number"]) == (1, 2)
    assert first["complete"] and second["complete"] and not first["grown"]
    return [entry for entry in second["grown"] if entry["grew"] == MORE]


def test_a_global() -> None:
    (entry,) = grown(lambda _: kept.append(np.ones(1000)))
    assert entry["owner"] == "`kept` (global of test_census.py)"
    assert entry["items"] == "ndarray float64[1000]"
    assert 8000 <= entry["each"] < 9000
    assert entry["length"] == FIRST + MORE


def test_an_attribute_that_the_collector_does_not_know_of() -> None:
    trainer = Trainer()
    (entry,) = grown(lambda number: trainer.cache.__setitem__(number, np.ones(10)))
    assert not gc.is_tracked(trainer.cache)
    assert (entry["type"], entry["owner"]) == ("dict", "`.cache` of a Trainer object")


def test_an_attribute_of_an_object_whose_names_were_asked_for() -> None:
    """Since Python 3.11 it then has a dictionary of its own."""
    trainer = Trainer()
    assert vars(trainer)
    (entry,) = grown(lambda number: trainer.cache.__setitem__(number, np.ones(10)))
    assert entry["owner"] == "`.cache` of a Trainer object"


def test_an_attribute_of_a_class() -> None:
    (entry,) = grown(lambda number: Trainer.history.__setitem__(number, [number]))
    assert entry["owner"] == "`.history` of class Trainer"


def test_a_local_variable() -> None:
    results: set[int] = set()
    (entry,) = grown(lambda number: results.add(number))
    assert entry["owner"] == "`results` (local of test_a_local_variable() in test_census.py)"


def test_a_closure() -> None:
    def make() -> Any:
        seen: list[int] = []
        return lambda number: seen.append(number)

    (entry,) = grown(make())
    assert entry["owner"] == "`seen` (variable around <lambda>() in test_census.py)"


def test_a_container_in_another() -> None:
    kept.append([[]])
    (entry,) = grown(lambda number: kept[0][0].append(number))
    assert entry["owner"] == "an item of an item of `kept` (global of test_census.py)"


def largest() -> dict[str, str]:
    """Owner and what it is, of what takes a megabyte or more."""
    notes = Written()
    Census(Tally()).take(notes, None)
    return {
        entry["owner"]: f"{entry['type']} {entry['what']}"
        for entry in notes.answers[0]["largest"]
        if "test_census" in (entry["file"] or "")
    }


def test_the_largest_arrays_and_who_owns_them() -> None:
    class Loader:
        def __init__(self) -> None:
            self.images = np.ones((300, 1000))

    loader = Loader()
    rows = np.ones((200, 1000))[1:]  # a view: what it keeps alive counts
    kept.extend((number, np.ones(20_000)) for number in range(20))
    trainer = Trainer()
    trainer.cache.update((number, np.ones(50_000)) for number in range(10))
    assert loader is not None and rows is not None
    assert largest() == {
        "`kept` (global of test_census.py)": "list tuple",
        "`.cache` of a Trainer object": "dict ndarray float64[50000]",
        "`.images` of a Loader object": "ndarray float64[300,1000]",
        "`rows` (local of test_the_largest_arrays_and_who_owns_them() in test_census.py)": "ndarray float64[199,1000]",
    }


def test_what_lies_in_a_file_is_not_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.ones((300, 1000)))
    mapped = np.asarray(np.load(tmp_path / "data.npy", mmap_mode="r"))
    assert mapped.shape == (300, 1000)
    assert largest() == {}


def test_what_all_items_share_is_not_theirs() -> None:
    model = np.ones(1_000_000)
    (entry,) = grown(lambda number: kept.append((number, model)))
    assert entry["each"] < 1000


def test_nothing_of_the_program_is_kept_alive() -> None:
    class Array(np.ndarray):
        pass

    gone: list[int] = []

    def work() -> None:
        local = np.ones(10).view(Array)
        import weakref

        weakref.finalize(local, gone.append, 1)
        Census(Tally()).take(Written(), None)
        local = None
        assert gone == [1]

    work()
    assert gc.isenabled()


def test_counts_of_traces_and_variables() -> None:
    tally, notes = Tally(), Written()
    for _ in range(3):
        tally.traced("train_step_1", ("/home/ada/train.py", 30, "train_step"))
        tally.made_variable(("/home/ada/train.py", 21, "build"))
    Census(tally).take(notes, None)
    assert notes.answers[0]["traces"] == [["train_step", "/home/ada/train.py", 30, 3]]
    assert notes.answers[0]["variables_made"] == [["", "/home/ada/train.py", 21, 3]]
