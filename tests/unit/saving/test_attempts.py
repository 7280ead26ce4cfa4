"""Saves that fail: every problem is told once, and nothing is raised."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("numpy")

from faultlens.saving.attempts import Attempts
from faultlens.saving.errors import SaveError


def told(attempts: Attempts, *actions: Any) -> tuple[list[str], list[bool]]:
    outcomes: list[bool] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for action in actions:
            attempts.make(action, outcomes.append)
    return [str(each.message) for each in said], outcomes


def fails(text: str) -> Any:
    def action() -> Any:
        raise SaveError(text)

    return action


def warns(text: str) -> Any:
    return lambda: warnings.warn(text, RuntimeWarning, stacklevel=1)


def test_the_same_problem_under_other_names_and_sizes_is_told_once() -> None:
    said, outcomes = told(
        Attempts(),
        fails("/run/01.keras was not saved: it needs 3.5 MB, and 1 MB are free in /run."),
        fails("/run/02.keras was not saved: it needs 3.6 MB, and 7 kB are free in /run."),
        fails("/run/03.keras was not saved: /run is on a read-only file system."),
        lambda: None,
    )
    assert outcomes == [False, False, False, True]
    assert [each.partition(" was")[0] for each in said] == ["/run/01.keras", "/run/03.keras"]
    assert said[0].endswith("The training goes on, and earlier saves stay.")


def test_warnings_of_a_save_are_told_once() -> None:
    said, outcomes = told(Attempts(), warns("/a/1.keras: odd"), warns("/a/2.keras: odd"), warns("/a/2.keras: strange"))
    assert (said, outcomes) == (["/a/1.keras: odd", "/a/2.keras: strange"], [True, True, True])


def test_what_must_not_be_caught() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Attempts().make(interrupted, lambda _: None)
