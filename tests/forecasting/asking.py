"""How the tests ask for measured runs and for forecasts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from faultlens.forecasting.runs import Ran, Runs

PROGRAMS = Path(__file__).parent / "programs"
MODELS = PROGRAMS / "models.py"
GIB = 1 << 30


def request(function: str, batch: int = 4, steps: int = 2, **more: Any) -> dict[str, Any]:
    wanted = {"file": str(MODELS), "function": function, "batch": batch, "steps": steps, "phases": ["train"]}
    return {**wanted, "phase_seconds": 20, "spec": {}, "pipeline": {}, "optimizer": None, "data": None, **more}


def measured(runs: Runs, function: str, memory: int = 4 * GIB, **more: Any) -> Ran:
    return runs.run(request(function, **more), memory, 60)


class Told:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status = done.returncode
        self.text = done.stdout
        self.errors = done.stderr

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


def forecast(*words: str) -> Told:
    command = [sys.executable, "-m", "faultlens", "forecast", *words]
    return Told(subprocess.run(command, capture_output=True, text=True, timeout=170))
