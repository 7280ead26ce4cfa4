"""Real crashes, shrunk to what causes look at (tools/record.py)."""

from __future__ import annotations

from pathlib import Path

from faultlens import reportfile
from faultlens.crash import Crash
from faultlens.diagnose import diagnose
from faultlens.diagnosis import Diagnosis

FOLDER = Path(__file__).parent.parent.parent / "recorded"


def load(name: str) -> Crash:
    return reportfile.read(FOLDER / f"{name}.json").crash


def first(crash: Crash) -> Diagnosis:
    """The verdict; every one has its proof and a fix."""
    diagnosis = diagnose(crash).diagnoses[0]
    assert len(diagnosis.evidence) >= 2
    assert diagnosis.fixes
    return diagnosis


def causes(crash: Crash) -> list[str]:
    return [diagnosis.cause for diagnosis in diagnose(crash).diagnoses]
