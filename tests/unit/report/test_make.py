"""From a crash to its report, whatever the crash holds and whatever a rule does."""

from __future__ import annotations

import pytest

import recorded
from faultlens.report.make import make_report
from hostile import hostile


@pytest.mark.parametrize("name", recorded.NAMES)
def test_the_verdict_can_be_made_again_from_the_report(name: str) -> None:
    report = make_report(recorded.report(name).crash)
    assert report.diagnoses
    assert make_report(report.crash) == report


def test_hostile_facts_do_not_stop_the_diagnosis() -> None:
    report = make_report(hostile().crash)
    assert report.diagnoses
    assert report.crash.gaps == hostile().crash.gaps


def test_a_rule_that_fails_does_not_cost_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a rule")

    monkeypatch.setattr("faultlens.diagnosis.rank.diagnose", fail)
    crash = recorded.report("segv_in_custom_op").crash
    report = make_report(make_report(crash).crash)
    assert report.diagnoses == ()
    assert report.crash.gaps == (*crash.gaps, "diagnosis: it failed with ZeroDivisionError: in a rule")
