"""How long a report is on a terminal of 80 columns, over every recorded crash."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from msgspec.structs import replace

import places
import recorded
from faultlens.records import report_file
from faultlens.records.crash import Frame, Thread
from faultlens.records.report_file import Report
from faultlens.report import html, markdown
from faultlens.report.make import make_report

FOLDER = places.RECORDED
STORED = Path("/home/ada/.local/state/faultlens/20251116T120000Z-python-SIGSEGV-1a2b3c4d/report.json")
LONGEST, USUAL = 30, 21


def told(path: Path) -> Report:
    """As `faultlens run` tells it: where the program survived, the child that died."""
    crash = report_file.read(path).crash
    survived = crash.outcome.kind == "ok" and crash.children
    return make_report(crash.children[0] if survived else crash)


def test_a_report_fits_on_the_screen() -> None:
    lengths = {path.stem: len(recorded.plain(told(path), stored=STORED).splitlines()) for path in FOLDER.glob("*.json")}
    assert len(lengths) > 100
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}
    assert statistics.mean(lengths.values()) <= USUAL


@pytest.mark.parametrize("functions", [("walk",), ("even", "odd"), ("visit", "visit_node", "generic_visit")])
def test_a_recursion_is_short_in_every_form(functions: tuple[str, ...]) -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    turns = [
        Frame(kind="python", function=name, file="tree.py", line=3 + turn % 4)
        for turn in range(300)
        for name in functions
    ]
    threads = tuple(Thread(id=number, crashed=number == 1, frames=tuple(turns)) for number in (1, 2))
    deep = replace(report, crash=replace(report.crash, pid=1, threads=threads))
    again = "… this call 299 times more" if len(functions) == 1 else f"… these {len(functions)} calls 299 times more"
    assert len(recorded.plain(deep).splitlines()) <= LONGEST
    whole = recorded.plain(deep, verbose=True)
    assert again in whole and whole.count("tree.py") < 20
    document = markdown.document(deep)
    assert again in document and document.count("tree.py") < 10
    assert again in html.page(deep)
