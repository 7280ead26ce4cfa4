"""The user's line as text, the op that was computed there, how far the program had come, and what is saved of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from faultlens.diagnosis.evidence.kernels import kernel_at_fault
from faultlens.inspection.frames import is_own_line
from faultlens.records.crash import Crash, Frame, Kernel
from faultlens.records.report_file import Report
from faultlens.report import variables
from faultlens.report.headline import line_of, native_end
from faultlens.report.kernels import briefly, kernel_in_words, line_in_words, others_in_words, settings_briefly
from faultlens.report.page import ALARM, GUTTER, OWN, QUIET, Section, fixed, flow, unbroken, words
from faultlens.report.progress import progress_in_words
from faultlens.report.saves import saving_in_words
from faultlens.report.source import SourceLine, excerpt
from faultlens.report.threads import function_name
from faultlens.report.verdict import called_from, pointed_at, subject, verdict
from faultlens.supervise.condensed import LINES_BEFORE

_INPUTS_SHOWN, _FEW_INPUTS = 12, 5


def sections(report: Report, width: int) -> Iterator[Section]:
    crash = subject(report)
    frame = pointed_at(report)
    quoted = _at(report, frame, width)
    yield Section("at", quoted)
    yield Section("op", _op(crash, frame if quoted else None, width))
    told = progress_in_words(crash.progress)
    yield Section("progress", [words(told)] if told else [])
    yield Section("saves", [words(line) for line in saving_in_words(crash)])


def in_brief(report: Report, width: int) -> Iterator[Section]:
    """The same on fewer lines."""
    crash = subject(report)
    frame = pointed_at(report)
    quoted = _at(report, frame, width, around=2)
    if not quoted and verdict(report):  # without one the title names the line
        quoted = _named(crash, frame)
    yield Section("at", quoted)
    kernel = kernel_at_fault(crash)
    shown = frame if quoted else None
    yield Section("op", _kernel(kernel, shown, crash, width, _FEW_INPUTS) if kernel else [], spaced=not quoted)
    told = progress_in_words(crash.progress) if _says_how_far(crash) else None
    yield Section("progress", [words(told)] if told else [], spaced=not (quoted or kernel))
    yield Section("saves", [words(line) for line in saving_in_words(crash)])


def _says_how_far(crash: Crash) -> bool:
    """An exception does not come out of the blue: when the last sign was seen says nothing."""
    progress = crash.progress
    return progress is not None and bool(crash.outcome.kind != "exception" or progress.epoch or progress.step)


def _named(crash: Crash, frame: Frame | None) -> list[Text]:
    """The line where its source is not known, else the native code that died."""
    thread = crash.crashed_thread
    if frame := frame or next(filter(is_own_line, thread.frames if thread else ()), None):
        return [_where(frame, crash)]
    native = native_end(crash)
    return [words(native)] if native else []


def _at(report: Report, frame: Frame | None, width: int, around: int = LINES_BEFORE) -> list[Text]:
    crash, caller = subject(report), called_from(report)
    lines = excerpt(frame, crash, around) if frame else []
    if frame and around < LINES_BEFORE and crash.outcome.kind == "exception":  # the traceback has just shown it
        lines = [line for line in lines if line.number == frame.line]
    if frame is None or not (lines or caller):  # the title names a line that cannot be quoted
        return []
    rows = [_where(frame, crash)]
    for line in lines:
        rows += _source_rows(line, line.number == frame.line, len(str(lines[-1].number)))
    failing = next((line.text for line in lines if line.number == frame.line), "")
    if told := variables.on_line(frame, failing):
        rows += flow(told, width, "where ")
    return [*rows, unbroken(words("called from "), _where(caller, crash))] if caller else rows


def _where(frame: Frame, crash: Crash) -> Text:
    return unbroken(words(line_of(frame, crash), OWN), words(f"  in {function_name(frame)}", QUIET))


def _op(crash: Crash, shown: Frame | None, width: int) -> list[Text]:
    """The op at fault with its inputs, the line that wrote it where that is not the one above, and ops beside it."""
    kernel = kernel_at_fault(crash)
    rows = _kernel(kernel, shown, crash, width, _INPUTS_SHOWN) if kernel else []
    others = others_in_words(crash)
    return [*rows, *([words(others, QUIET)] if others else [])]


def _kernel(kernel: Kernel, shown: Frame | None, crash: Crash, width: int, inputs: int) -> list[Text]:
    name = kernel_in_words(kernel, with_node=inputs > _FEW_INPUTS)
    rows = [words(name, OWN), *flow(briefly(kernel, inputs), width, "inputs ")]
    if settings := settings_briefly(kernel, inputs):
        rows += flow(settings, width, "with ")
    if kernel.written and not (shown and _same_line(kernel.written, shown)):
        rows.append(words(f"written at {line_in_words(kernel.written, crash)}"))
    if kernel.layer_made:
        rows.append(words(f"its layer was made at {line_in_words(kernel.layer_made, crash)}"))
    return rows


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
