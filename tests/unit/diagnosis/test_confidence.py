"""How sure verdicts are: fitted, in one direction for each fact, and unsure of what no rule knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

import places
from faultlens.diagnosis import confidence
from faultlens.diagnosis.causes import catalogue
from faultlens.diagnosis.causes.base import Finding
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome
from faultlens.records.diagnosis import UNKNOWN, Evidence

CRASHES = {path.stem: report_file.read(path).crash for path in sorted(places.RECORDED.glob("*.json"))}
AGAINST = ("doubted", "contested", "general")


def _found(strength: float, sources: tuple[str, ...] = ("siginfo",), **about: object) -> dict[str, float]:
    evidence = tuple(Evidence(fact=f"a fact of {source}", source=source) for source in sources)
    found = Finding(strength=strength, title="it did it", evidence=evidence, fixes=(), **about)  # type: ignore[arg-type]
    case = Case(Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="agent"))
    return confidence.features(case, [(catalogue()[0], found)])


def test_the_more_a_rule_claims_the_surer_it_is() -> None:
    sure = [confidence.probability(_found(step / 100)) for step in range(5, 98)]
    assert all(less <= more for less, more in pairwise(sure))
    assert sure[0] < 0.2 and sure[-1] > 0.9


@pytest.mark.parametrize("fact", [*AGAINST, "claim", "proved", "witnesses", "op known", "line known", "seen dying"])
def test_every_fact_moves_it_in_one_direction(fact: str) -> None:
    facts = _found(0.75)
    less, more = (confidence.probability({**facts, fact: value}) for value in (0.0, 1.0))
    assert more <= less if fact in AGAINST else more >= less


def test_what_the_doctor_foresaw_is_no_witness() -> None:
    assert _found(0.9, ("siginfo", "faultlens doctor numpy-abi"))["witnesses"] == 0
    assert _found(0.9, ("siginfo", "stderr", "cgroup counter"))["witnesses"] == 2


def test_nothing_is_certain() -> None:
    assert 0 < confidence.probability({"claim": -1e3}) < confidence.probability({"claim": 1e3}) < 1


@pytest.mark.parametrize("name", CRASHES)
def test_the_order_is_that_of_the_claims(name: str) -> None:
    found = [each.confidence for each in diagnose(CRASHES[name]).diagnoses if each.cause != UNKNOWN]
    assert found == sorted(found, reverse=True)


def _without_the_true_cause(monkeypatch: pytest.MonkeyPatch) -> Iterator[float]:
    """How sure the verdict on each crash would be, had nobody thought of its cause."""
    for crash in CRASHES.values():
        causes = catalogue()
        if found := diagnose(crash).diagnoses:
            others = tuple(cause for cause in causes if cause.slug != found[0].cause)
            with monkeypatch.context() as patch:
                patch.setattr("faultlens.diagnosis.rank.catalogue", lambda others=others: others)
                rest = diagnose(crash).diagnoses
            yield rest[0].confidence if rest else 0.0


def test_a_kind_of_crash_that_no_rule_knows_comes_out_unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [found[0].confidence for crash in CRASHES.values() if (found := diagnose(crash).diagnoses)]
    unseen = list(_without_the_true_cause(monkeypatch))
    assert sum(known) / len(known) > 0.85
    assert sum(unseen) / len(unseen) < 0.25
    assert sum(sure > 0.8 for sure in unseen) <= len(unseen) // 50
