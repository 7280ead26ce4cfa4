"""Generated programs with every kind of handler, stack, thread and child end under faultlens as they end alone.

The whole round is `python benchmarks/generated.py --count 2000`; these are the first of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GENERATED = Path(__file__).parents[2] / "benchmarks" / "generated.py"


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_they_end_as_they_do_alone(tmp_path: Path) -> None:
    command = [sys.executable, GENERATED, "--seed", "17", "--count", "40", "--whole", "--keep", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr + _endings(tmp_path)


def _endings(kept: Path) -> str:
    return "".join(f"\n=== {path.relative_to(kept)}\n{path.read_text()}" for path in sorted(kept.glob("*/*"))[:12])
