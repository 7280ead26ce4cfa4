"""How many lines a report takes on a terminal of 80 columns."""

from __future__ import annotations

import io
import statistics
from pathlib import Path

from measure import Bench, Table, verdict

from faultlens.cli import output
from faultlens.records import report_file
from faultlens.records.report_file import Report
from faultlens.report.make import make_report

RECORDED = Path(__file__).parent.parent / "tests" / "recorded"
STORED = Path("/home/ada/.local/state/faultlens/report.json")
USUAL, LONGEST = 20, 30
TITLE = "The length of a report"
TEXT = """\
Lines on a terminal of 80 columns, of what `faultlens run`, `explain` and `show` print of the {count} recorded crashes
of the tests; with `-v`, everything that was recorded."""
HEADER = ("", "mean", "longest", "target", "")


def run(_: Bench) -> Table:
    reports = [_told(path) for path in sorted(RECORDED.glob("*.json"))]
    table = Table(TITLE, TEXT.format(count=len(reports)), HEADER)
    for name, verbose in (("by default", False), ("with `-v`", True)):
        lines = [_lines(report, verbose) for report in reports]
        mean, longest = statistics.mean(lines), max(lines)
        met = verdict(mean, USUAL) if longest <= LONGEST else "**missed**"
        target = ("", "") if verbose else (f"{USUAL}, at most {LONGEST}", met)
        table.rows.append([name, f"{mean:.0f}", f"{longest}", *target])
        table.data[name] = {"mean": mean, "longest": longest}
    return table


def _told(path: Path) -> Report:
    """As `faultlens run` tells it: where the program survived, the child that died."""
    crash = report_file.read(path).crash
    survived = crash.outcome.kind == "ok" and crash.children
    return make_report(crash.children[0] if survived else crash)


def _lines(report: Report, verbose: bool) -> int:
    stream = io.StringIO()  # as wide as a pipe: 80 columns
    output.render(report, stream, verbose=verbose, stored=STORED)
    return len(stream.getvalue().splitlines())
