"""How the table of advisories is made (tools/write_advisories.py)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROW = {
    "id": "CVE-1",
    "ghsa": "GHSA-1",
    "raw_ops": ["AvgPoolGrad"],
    "apis": [],
    "named": [],
    "effects": ["check_failure"],
    "affected": [["0", "2.9.1"]],
    "sources": [],
}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "tools"))
    monkeypatch.delitem(sys.modules, "write_advisories", raising=False)
    import write_advisories  # type: ignore[import-not-found]

    return write_advisories


def test_inputs_are_merged_and_other_packages_left_out(tool: Any) -> None:
    later = {**ROW, "package": "tensorflow", "affected": [["0", "2.9.2"]]}
    rows = [ROW, later, {**ROW, "id": "CVE-2", "package": "keras"}, {**ROW, "id": "CVE-3", "effects": ["leak"]}]
    assert [(row["id"], row["affected"]) for row in tool.merged(rows)] == [("CVE-1", [["0", "2.9.2"]])]
