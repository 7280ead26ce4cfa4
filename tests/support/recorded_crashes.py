"""Real crashes, shrunk to what causes look at (tools/record.py)."""

from __future__ import annotations

import places
from faultlens.diagnosis import confidence
from faultlens.diagnosis.causes import catalogue
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.diagnosis.rank import diagnose, findings
from faultlens.records import report_file
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Diagnosis

FOLDER = places.RECORDED


def load(name: str) -> Crash:
    return report_file.read(FOLDER / f"{name}.json").crash


def first(crash: Crash) -> Diagnosis:
    """The verdict; every one has its proof and a fix."""
    diagnosis = diagnose(crash).diagnoses[0]
    assert len(diagnosis.evidence) >= 2
    assert diagnosis.fixes
    return diagnosis


def claim(crash: Crash) -> float:
    """What the rule behind the verdict claims; how sure the verdict is, is fitted to such claims."""
    ranked = findings(Case(subject_of(crash)), catalogue())
    return round(confidence.claimed(ranked[0][1]), 2) if ranked else 0.0


def causes(crash: Crash) -> list[str]:
    return [diagnosis.cause for diagnosis in diagnose(crash).diagnoses]
