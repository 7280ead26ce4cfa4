"""Every line of docs/security.md names a test that is there."""

from __future__ import annotations

import re

import places

ROOT = places.ROOT
PAGE = ROOT / "docs" / "security.md"


def test_each_line_names_its_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| what")]
    assert rows
    for row in rows:
        shown_by = row.rstrip(" |").rpartition(" | ")[2]
        names = re.findall(r"`(?P<file>[\w/.]*)::(?P<test>\w+)`", shown_by)
        assert names, f"no test: {row}"
        file = ""
        for named, test in names:
            file = named or file  # `::test` is in the same file as the one before
            assert re.search(rf"def {test}\b", (ROOT / file).read_text()), f"{file}::{test}"
