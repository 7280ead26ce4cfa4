"""The user's line on the page, with those around it."""

from __future__ import annotations

from typing import Any, NamedTuple

from faultlens.records.report_file import Report
from faultlens.report.headline import short_path
from faultlens.report.source import SourceLine, excerpt
from faultlens.report.verdict import pointed_at, subject
from faultlens.text.safe import one_line

LINE = 400  # characters of a line of source or output


class SourceRow(NamedTuple):
    number: int
    failing: bool
    before: str
    marked: str
    after: str


def source_section(report: Report) -> dict[str, Any] | None:
    crash = subject(report)
    frame = pointed_at(report)
    lines = excerpt(frame, crash) if frame else []
    if frame is None or not lines:
        return None
    return {
        "where": f"{short_path(frame.file or '', crash)}:{frame.line}",
        "function": one_line(frame.function, 120),
        "rows": [_source_row(line, line.number == frame.line) for line in lines],
    }


def _source_row(line: SourceLine, failing: bool) -> SourceRow:
    start, end = line.underline or (0, 0)
    pieces = (line.text[:start], line.text[start:end], line.text[end:])
    return SourceRow(line.number, failing, *(one_line(piece, LINE) for piece in pieces))
