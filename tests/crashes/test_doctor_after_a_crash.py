"""What the doctor finds in the environment of a crash stands in its report, and is asked anew of nobody later."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faultlens.records import report_file
from faultlens.report.make import renewed

PRELOAD_KILLS = "import hashlib; print(hashlib.sha256(b'x').hexdigest())"


@pytest.fixture
def framework() -> Path:
    """TensorFlow's library, which has BoringSSL inside."""
    found = importlib.util.find_spec("tensorflow")
    folder = Path(found.origin).parent if found and found.origin else Path("none")
    library = folder / "libtensorflow_framework.so.2"
    if not library.exists():
        pytest.skip("needs TensorFlow")
    return library


@pytest.mark.tensorflow
def test_a_crash_that_the_doctor_foresees(run: Any, framework: Path, tmp_path: Path) -> None:
    died = run(["env", f"LD_PRELOAD={framework}", sys.executable, "-c", PRELOAD_KILLS])
    if died.returncode == 0:
        pytest.skip("this Python's hashlib does not use a shared libcrypto")
    assert died.returncode == -11
    report = report_file.read(tmp_path / "report.json")
    assert [finding.check for finding in report.findings] == ["preload"]
    best = report.diagnoses[0]
    assert best.cause in report.findings[0].causes
    assert "faultlens doctor preload" in [item.source for item in best.evidence]
    assert "unset LD_PRELOAD" in [fix.command for fix in best.fixes]
    assert "$ unset LD_PRELOAD" in died.stderr
    assert renewed(report) == report  # kept in the report: the environment may be mended by then


@pytest.mark.tensorflow
def test_the_doctor_survives_what_kills_its_patient(framework: Path) -> None:
    """And leaves no trace of its own in the variables it judges."""
    done = subprocess.run(
        ["env", f"LD_PRELOAD={framework}", sys.executable, "-m", "faultlens", "doctor", "preload", "--json", "-"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert str(framework) in json.dumps(told["examinations"][0]["findings"])


def test_a_healthy_environment_adds_nothing(run: Any, tmp_path: Path) -> None:
    died = run("import os; os.abort()")
    assert died.returncode == -6
    assert report_file.read(tmp_path / "report.json").findings == ()
