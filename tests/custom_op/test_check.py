"""`op check` on the ops of the corpus: most mistakes are found by reading, corrected and real ops are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faultlens.custom_op.check.check import check
from faultlens.custom_op.check.interpret.unit import load
from faultlens.records.op_finding import OpFinding

HERE = Path(__file__).parent
SETS = ("ops", "unseen")  # those that the rules were made with, and others
LATER = "second"  # looked at after they were measured
NEAR = 2  # lines


def above_notes(path: Path) -> list[OpFinding]:
    return [finding for finding in check(load([path])) if finding.severity != "note"]


def is_found(folder: Path) -> bool:
    guilty = json.loads((folder / "about.json").read_text())["guilty"]
    return any(
        first - NEAR <= finding.span.line <= last + NEAR
        for finding in above_notes(folder / "bug.cc")
        if finding.span is not None
        for first, last in guilty
    )


@pytest.mark.parametrize("name", SETS)
def test_at_least_four_of_five_mistakes_are_found(name: str) -> None:
    folders = sorted(path.parent for path in (HERE / name).glob("*/bug.cc"))
    missed = [folder.name for folder in folders if not is_found(folder)]
    assert len(folders) > 20
    assert len(missed) <= len(folders) / 5, missed


@pytest.mark.parametrize(
    "name",
    sorted(
        str(path.relative_to(HERE))
        for each in (*SETS, LATER)
        for path in (HERE / each).glob("*/*.cc")
        if path.stem != "bug"
    ),
)
def test_corrected_and_real_ops_are_left_alone(name: str) -> None:
    assert [f"{each.code} line {each.span and each.span.line}: {each.title}" for each in above_notes(HERE / name)] == []
