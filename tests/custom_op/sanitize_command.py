"""Runs `faultlens op sanitize` as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def sanitized(arguments: Sequence[str | Path], home: Path, expected: int) -> tuple[dict[str, Any], str]:
    """What it wrote as JSON, if it did, and the output."""
    written = home / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "op", "sanitize", "--json", written, *arguments],
        env={**os.environ, "FAULTLENS_HOME": str(home), "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTEROP_THREADS": "4"},
        capture_output=True,
        text=True,
        cwd=home,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return json.loads(written.read_text()) if written.exists() else {}, done.stdout + done.stderr
