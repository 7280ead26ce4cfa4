"""One scale of severities, and one set of exit statuses."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

import places
from faultlens.cli import exit_codes, main
from faultlens.cli.exit_codes import exit_status
from faultlens.records.op_finding import OpFinding, OpReport
from faultlens.records.scan import Flaw, Place, Scan
from faultlens.records.severity import WORST_FIRST, Grave, Severity, is_grave, number_of, rank, worst

ROOT = places.ROOT
CODES = {name: code for name, code in vars(exit_codes).items() if name.isupper()}


class Found(NamedTuple):
    severity: Severity


def test_the_scale() -> None:
    assert set(WORST_FIRST) == set(get_args(Severity)) and set(get_args(Grave)) < set(WORST_FIRST)
    assert [severity for severity in WORST_FIRST if is_grave(severity)] == ["error", "warning"]
    for severities in itertools.product(WORST_FIRST, repeat=3):
        assert worst(map(Found, severities)) == min(severities, key=rank)
        assert sum(number_of(severity, list(map(Found, severities))) for severity in WORST_FIRST) == 3
    assert worst([]) is None and not is_grave(None)


@pytest.mark.parametrize("severity", WORST_FIRST)
def test_reports_count_alike(severity: Severity) -> None:
    report = OpReport(verb="check", subject="a.cc", findings=(OpFinding("OP1", "x", severity, "title"),))
    flaw = Flaw(kind="empty", severity=severity, place=Place(path="a"), reason="is empty")
    scan = Scan(roots=(), flaws=(flaw,))
    assert report.is_grave == scan.is_grave == (severity != "note")
    assert (report.errors, report.warnings) == (scan.errors, scan.warnings)
    assert Scan(roots=(), flaws=(), flaws_untold=1).is_grave


def test_exit_status() -> None:
    assert [exit_status(findings=found, unseen=unseen) for found in (True, False) for unseen in (True, False)] == [
        1, 1, 2, 0,
    ]  # fmt: skip
    assert exit_status(findings=False) == exit_codes.FINE


def test_the_page_lists_them() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)} == set(CODES.values())
    for verb in ("run", "explain", "show", "repro", "verify", "scan", "forecast", "doctor", "causes"):
        assert f"`{verb}`" in page
    for verb in ("new", "check", "test", "sanitize"):
        assert f"`op {verb}`" in page


def test_no_verb_has_numbers_of_its_own() -> None:
    """`return 2`, `CANNOT = 2` and the like stand in one place."""
    for path in (ROOT / "src" / "faultlens" / "cli").rglob("*.py"):
        if path.name not in ("exit_codes.py", "run.py"):  # which passes on that of the program
            assert not re.findall(
                r"^\s+return [0-9]+$|^[A-Z_, ]*(?:FINE|FOUND|FINDINGS|CANNOT)[A-Z_, ]* = ", path.read_text(), re.M
            ), path


def test_no_cause_no_report_and_bad_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes"]) == exit_codes.FINE
    assert main(["causes", "no-such-cause"]) == exit_codes.CANNOT
    assert main(["show", str(tmp_path / "none")]) == exit_codes.CANNOT
    assert main(["run", str(tmp_path / "no_program.py")]) == exit_codes.CANNOT
    with pytest.raises(SystemExit) as bad:
        main(["scan"])
    assert bad.value.code == exit_codes.CANNOT
    capsys.readouterr()
