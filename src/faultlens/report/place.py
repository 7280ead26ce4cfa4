"""The user's line as text, the op that was computed there, how far the program had come, and what is saved of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from faultlens.clues.kernels import kernel_at_fault
from faultlens.crash import Crash, Frame
from faultlens.report.headline import line_of
from faultlens.report.kernels import briefly, kernel_in_words, line_in_words, others_in_words
from faultlens.report.page import ALARM, GUTTER, OWN, QUIET, Section, fixed, flow, unbroken, words
from faultlens.report.progress import progress_in_words
from faultlens.report.saves import saving_in_words
from faultlens.report.source import SourceLine, excerpt
from faultlens.report.verdict import called_from, pointed_at, subject
from faultlens.reportfile import Report

_INPUTS_SHOWN = 12


def sections(report: Report, width: int) -> Iterator[Section]:
    crash = subject(report)
    frame = pointed_at(report)
    quoted = _at(report, frame)
    yield Section("at", quoted)
    yield Section("op", _op(crash, frame if quoted else None, width))
    told = progress_in_words(crash.progress)
    yield Section("progress", [words(told)] if told else [])
    yield Section("saves", [words(line) for line in saving_in_words(crash)])


def _at(report: Report, frame: Frame | None) -> list[Text]:
    crash, caller = subject(report), called_from(report)
    lines = excerpt(frame, crash) if frame else []
    if frame is None or not (lines or caller):  # the title names a line that cannot be quoted
        return []
    rows = [_where(frame, crash)]
    for line in lines:
        rows += _source_rows(line, line.number == frame.line, len(str(lines[-1].number)))
    return [*rows, unbroken(words("called from "), _where(caller, crash))] if caller else rows


def _where(frame: Frame, crash: Crash) -> Text:
    return unbroken(words(line_of(frame, crash), OWN), words(f"  in {frame.function}", QUIET))


def _op(crash: Crash, shown: Frame | None, width: int) -> list[Text]:
    """The op at fault with its inputs, the line that wrote it where that is not the one above, and ops beside it."""
    kernel = kernel_at_fault(crash)
    rows = []
    if kernel:
        rows += [words(kernel_in_words(kernel), OWN), *flow(briefly(kernel, _INPUTS_SHOWN), width, "inputs ")]
        if kernel.written and not (shown and _same_line(kernel.written, shown)):
            rows.append(words(f"written at {line_in_words(kernel.written, crash)}"))
        if kernel.layer_made:
            rows.append(words(f"its layer was made at {line_in_words(kernel.layer_made, crash)}"))
    others = others_in_words(crash)
    return [*rows, *([words(others, QUIET)] if others else [])]


def _source_rows(line: SourceLine, failing: bool, digits: int) -> list[Text]:
    mark = Text("▶ " if failing else "  ", ALARM)
    gutter = Text(f"{line.number:>{digits}} │ ", GUTTER)
    rows = [fixed(mark, gutter, words(line.text, OWN if failing else QUIET))]
    if line.underline:
        start, end = line.underline
        gutter = Text(" " * (digits + 3) + "│ ", GUTTER)
        rows.append(fixed(gutter, Text(" " * start + "^" * (end - start), ALARM)))
    return rows


def _same_line(one: Frame, other: Frame) -> bool:
    return (one.file, one.line) == (other.file, other.line)
