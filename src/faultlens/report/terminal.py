"""The report on a crash as text: in brief, or all of it."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from faultlens.records.crash import Crash, Saving
from faultlens.records.report_file import Report
from faultlens.report import brief, full
from faultlens.report.headline import headline, kind_of_end
from faultlens.report.page import ALARM, WARNING, Title, body_width, print_line, section_lines, title
from faultlens.report.verdict import subject, sure, verdict
from faultlens.text.safe import LINE_LIMIT, one_line

_LINES_OF_TITLE = 3
_KINDS = {
    "crash": ALARM,
    "killed": ALARM,
    "ended": WARNING,
    "hang": WARNING,
    "timeout": WARNING,
    "exception": ALARM,
    "exit": WARNING,
    "ok": "bold green",
}


def render(
    report: Report,
    *,
    verbose: bool = False,
    console: Console,
    stored: Path | None = None,
    name: str = "",
    saves_today: Saving | None = None,
) -> None:
    """Print the report. `stored` is where it is kept, `name` what it is called on the command line unless it is the
    latest; `verbose` adds every fact there is; `saves_today` is how the saves look now that were looked at when the
    program ended."""
    width = body_width(console)
    if verbose:
        limit, told = 4 * LINE_LIMIT, full.sections(report, width, stored, saves_today)
    else:
        limit, told = _LINES_OF_TITLE * width, brief.sections(report, width, stored, name, saves_today)
    first = _title(report, limit)
    lines = first.lines(console.width)
    for section in told:
        lines += section_lines(console, section)
    if console.is_terminal and _height(lines, console.width) >= console.height:  # the prompt takes a line, too
        lines += [Text(), first.line(console.width)]
    for line in lines:
        print_line(console, line)


def _title(report: Report, limit: int) -> Title:
    crash, found = subject(report), verdict(report)
    kind = kind_of_end(crash)
    if found is None:
        return title(kind, _KINDS[kind], headline(report.crash), limit=limit)
    level = "error" if _KINDS[kind] == ALARM else "warning"
    lead = f"{level}[{one_line(found.code, 12)}] {one_line(found.cause, 60)}"
    signal = _signal(crash)
    aside = ", ".join(part for part in (signal if signal not in found.title else "", sure(found)) if part)
    return title(lead, _KINDS[kind], found.title, aside, limit)


def _signal(crash: Crash) -> str:
    """By which it died; one that ended a hang is of no interest."""
    signal = crash.outcome.signal if crash.outcome.kind == "signal" else None
    return signal or (crash.fault.signal if crash.fault else "")


def _height(lines: list[Text], width: int) -> int:
    return sum(max(-(-cell_len(line.plain) // width), 1) for line in lines)
