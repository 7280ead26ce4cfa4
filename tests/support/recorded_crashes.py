"""Real crashes, shrunk to what causes look at (tools/record.py)."""

from __future__ import annotations

import places
from faultlens.diagnosis.rank import diagnose
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


def causes(crash: Crash) -> list[str]:
    return [diagnosis.cause for diagnosis in diagnose(crash).diagnoses]
