"""A program that ends in several ways: a verdict that another run contradicts is no certain one."""

from __future__ import annotations

import sys
from pathlib import Path

from faultlens.records import report_file

PROGRAM = """\
import ctypes, os, pathlib
count = pathlib.Path("count")
if count.exists():
    os.abort()
count.touch()
ctypes.string_at(0)
"""


def latest(done) -> report_file.Report:
    return max(map(report_file.read, done.saved), key=lambda report: report.crash.time or 0.0)


def test_a_verdict_that_changes_between_runs_is_told_less_surely(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM)
    before = latest(run([sys.executable, "main.py"])).diagnoses[0]
    after = latest(run([sys.executable, "main.py"])).diagnoses[0]
    assert (before.cause, after.cause) == ("null-pointer-passed", "signal-raised-by-program")
    assert before.confidence > 0.6 >= after.confidence
    assert after.evidence[-1].fact == "the same program was judged otherwise before: null-pointer-passed"


def test_another_program_does_not_count(run, tmp_path: Path) -> None:
    for text in ("import ctypes; ctypes.string_at(0)", "import os; os.abort()"):
        (tmp_path / "main.py").write_text(text)
        done = run([sys.executable, "main.py"])
    assert latest(done).diagnoses[0].confidence > 0.6
