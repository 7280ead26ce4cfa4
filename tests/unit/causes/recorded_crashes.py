"""Real crashes, shrunk to what causes look at (tools/record.py)."""

from __future__ import annotations

from pathlib import Path

from faultlens import reportfile
from faultlens.crash import Crash

FOLDER = Path(__file__).parent.parent.parent / "recorded"


def load(name: str) -> Crash:
    return reportfile.read(FOLDER / f"{name}.json").crash
