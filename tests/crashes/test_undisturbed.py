"""Real programs, runtimes, tools and test suites live and end under faultlens as they do alone.

The whole comparison is `python benchmarks/transparency.py`; this is its short form."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TRANSPARENCY = Path(__file__).parents[2] / "benchmarks" / "transparency.py"


@pytest.mark.timeout(400)
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_programs_end_as_they_do_alone() -> None:
    done = subprocess.run([sys.executable, TRANSPARENCY, "--short"], capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
