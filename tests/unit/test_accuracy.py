"""How accuracy is measured (benchmarks/accuracy.py): a program with its truth, a tool, grades, and files that stay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TRUTH = {
    "id": "r1_null",
    "environment": "venv",
    "timeout_s": 20,
    "outcome": "signal:SIGSEGV",
    "causes": ["op-null-dereference"],
    "op": ["tf.raw_ops.QueueClose"],
    "location": {"file": "main.py", "lines": [3, 4]},
}
SAID: dict[str, Any] = {
    "schema": 1,
    "outcome": {"kind": "signal", "signal": "SIGSEGV", "exit_code": None},
    "diagnoses": [
        {
            "cause": "op-null-dereference",
            "confidence": 0.9,
            "location": {"file": "/jobs/main.py", "line": 4},
            "op": "QueueClose",
            "evidence": [{}, {}],
            "fixes": [{}],
        }
    ],
}
RIGHT = {"outcome", "cause", "cause_top3", "location", "op", "status", "explained"}


@pytest.fixture
def accuracy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The modules, which keep what they measure in a folder of the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    import accuracy
    import accuracy_page
    import crash_cases
    import crash_grades
    import reliability

    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(accuracy, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(accuracy_page, "DOCS", tmp_path)
    yield SimpleNamespace(
        main=accuracy, page=accuracy_page, cases=crash_cases, grades=crash_grades, reliability=reliability
    )
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]


def _case(folder: Path, shell: str, **truth: Any) -> Path:
    """A set of one program, with the environment it names."""
    case = folder / "cases" / "r1_null"
    case.mkdir(parents=True)
    (folder / "venvs" / "venv").mkdir(parents=True)
    (case / "case.json").write_text(json.dumps({**TRUTH, **truth}))
    (case / "run.sh").write_text(f"exec ${{WRAP:-}} bash -c '{shell}'\n")
    return folder / "cases"


def _tool(folder: Path, report: dict[str, Any]) -> str:
    """A tool that says the same of everything."""
    (folder / "said.json").write_text(json.dumps(report))
    script = folder / "tool"
    script.write_text(f'#!/bin/bash\ncp {folder}/said.json "$1"; shift; exec "$@"\n')
    script.chmod(0o755)
    return f"{script} {{report}}"


def _graded(accuracy: Any, folder: Path, shell: str, report: dict[str, Any], **truth: Any) -> dict[str, Any]:
    cases = _case(folder, shell, **truth)
    (case,) = accuracy.cases.load(cases, ["r1_*"])
    place = accuracy.cases.Place.of(cases, None, None, folder / "logs")
    alone = accuracy.cases.run(case, place).status
    told = accuracy.grades.graded(case, accuracy.cases.run(case, place, _tool(folder, report), 2), alone)
    assert (folder / "logs" / "r1_null" / "report.json").exists()
    return told


def test_a_right_report_is_right_in_every_grade(accuracy: Any, tmp_path: Path) -> None:
    told = _graded(accuracy, tmp_path, "ls case.json && exit 3; kill -SEGV $$", SAID)
    assert {name for name, right in told["grades"].items() if right} == RIGHT
    assert (told["alone"], told["status"]) == ("signal SIGSEGV", "signal SIGSEGV")  # and it did not see its truth
    assert told["family"] == "TensorFlow's own code" and told["said"]["confidence"] == 0.9


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"cause": "op-out-of-bounds"}, {"cause", "cause_top3"}),
        ({"location": {"file": "main.py", "line": 7}}, {"location"}),
        ({"op": "TensorFlow"}, {"op"}),
        ({"evidence": [{}]}, {"explained"}),
    ],
)
def test_what_is_wrong_is_told_apart(accuracy: Any, tmp_path: Path, change: dict[str, Any], wrong: set[str]) -> None:
    report = {**SAID, "diagnoses": [{**SAID["diagnoses"][0], **change}]}
    grades = _graded(accuracy, tmp_path, "kill -SEGV $$", report)["grades"]
    assert {name for name, right in grades.items() if right is False} == wrong


def test_a_hang_is_cut_and_its_status_is_not_graded(accuracy: Any, tmp_path: Path) -> None:
    told = _graded(accuracy, tmp_path, "sleep 600", SAID, outcome="hang", timeout_s=0.5)
    assert told["alone"] == told["status"] == "timeout" and told["grades"]["status"] is None


def test_settings_of_the_caller_are_not_passed_on(
    accuracy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    told = _graded(accuracy, tmp_path, "exit $((${#PYTHONPATH} + ${#TF_XLA_FLAGS}))", SAID, outcome="ok")
    assert told["status"] == "exit 0"


def test_first_contact_is_never_written_over(accuracy: Any, tmp_path: Path) -> None:
    of = accuracy.main.Round("unseen", 1, tmp_path)
    path, results = accuracy.main.begin(of, "aaaaaaa", again=False)
    assert path.name == "unseen_1.json" and results["first_contact"]
    accuracy.main.write(path, {**results, "cases": {"r1_null": {"family": "f"}}})
    assert accuracy.main.begin(of, "aaaaaaa", again=False)[1]["cases"]  # cut short: goes on
    assert accuracy.main.begin(of, "bbbbbbb", again=False)[0] is None
    again, mended = accuracy.main.begin(of, "bbbbbbb", again=True)
    assert again.name == "unseen_1_bbbbbbb.json" and not mended["first_contact"] and not mended["cases"]


def test_a_truth_that_does_not_hold_here_grades_nothing(accuracy: Any, tmp_path: Path) -> None:
    cases = _case(tmp_path, "exit 0")
    (case,) = accuracy.cases.load(cases)
    place = accuracy.cases.Place.of(cases, None, None)
    assert accuracy.main.on_its_own(case, place, None) == ("exit 0", "without a tool it ends by exit 0 here")
    assert accuracy.main.on_its_own(case, place, "signal SIGSEGV") == ("signal SIGSEGV", "")


def test_the_calibration_error_is_the_distance_of_claim_and_truth(accuracy: Any) -> None:
    error = accuracy.reliability.error
    assert error([(0.95, True)] * 19 + [(0.95, False)]) == pytest.approx(0.0)
    assert error([(0.9, False)] * 4) == pytest.approx(0.9)
    assert error([(0.05, False)] * 2 + [(0.85, True)] * 2) == pytest.approx((0.05 + 0.15) / 2)


def test_the_page_holds_every_round_and_names_confident_mistakes(accuracy: Any, tmp_path: Path) -> None:
    wrong = {**SAID, "diagnoses": [{**SAID["diagnoses"][0], "cause": "corrupt-input"}]}
    told = _graded(accuracy, tmp_path, "kill -SEGV $$", wrong)
    kept = tmp_path / "kept"
    for number in (1, 2):
        path, results = accuracy.main.begin(accuracy.main.Round("unseen", number, tmp_path), "aaaaaaa", False)
        accuracy.main.write(path, {**results, "cases": {f"r{number}_null": told}})
    use = {"r1_null": {"grade": 0, "why": "it blames the file"}}
    (kept / "unseen_1.usefulness.json").write_text(json.dumps(use))
    accuracy.page.write(kept)
    page = (tmp_path / "accuracy.md").read_text()
    assert "| unseen, round 1 | unseen, round 2 |" in page
    assert "- unseen, round 2, `r2_null`: said corrupt-input (0.90); truth: op-null-dereference" in page
    assert "- unseen, round 1, `r1_null`: it blames the file" in page
    assert (tmp_path / "accuracy.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("said", "accepted", "same"),
    [("Qr", "tf.raw_ops.Qr", False), ("Qr", "Qr", True), ("", "", False), ("max_pool", "MaxPool", True)],
)
def test_ops_with_short_names_must_be_named_exactly(accuracy: Any, said: str, accepted: str, same: bool) -> None:
    assert accuracy.grades._same_op(said, accepted) is same


def test_a_note_on_the_results_is_on_the_page(accuracy: Any) -> None:
    raw = {"set": "variants", "round": None, "first_contact": False, "commit": "abc", "measured": "today"}
    results = accuracy.page.Results(
        "variants", {**raw, "note": "truth was corrected.", "left_out": {}, "cases": {}}, {}, {}, {}
    )
    assert "variants: truth was corrected." in accuracy.page.page([results], {})
