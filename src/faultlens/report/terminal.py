"""The report on a crash as text: the one line, the fault in words, the user's line, the stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from faultlens.crash import Crash
from faultlens.diagnosis import Diagnosis
from faultlens.report import details
from faultlens.clues.frames import user_frame
from faultlens.report.headline import (
    crashed_child,
    headline,
    kind_of_end,
    memory_kill,
    no_memory_kill,
    short_path,
)
from faultlens.clues.last_words import abort_reason, last_words
from faultlens.report.page import (
    ALARM,
    GUTTER,
    OWN,
    PATH_LIMIT,
    QUIET,
    WARNING,
    Section,
    body_width,
    fixed,
    print_section,
    print_title,
    unbroken,
    words,
)
from faultlens.report.quantities import count, duration
from faultlens.report.source import SourceLine, excerpt
from faultlens.report.threads import other_threads, shown_threads, stack
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.reportfile import Report

_EXCEPTIONS_SHOWN = 3
_RULED_OUT_SHOWN = 5
_KINDS = {
    "crash": ALARM,
    "killed": ALARM,
    "ended": WARNING,
    "hang": WARNING,
    "exception": ALARM,
    "exit": WARNING,
    "ok": "bold green",
}


def render(report: Report, *, verbose: bool = False, console: Console, stored: Path | None = None) -> None:
    """Print the report. `stored` is where it is kept; `verbose` adds every fact there is."""
    crash = crashed_child(report.crash) or report.crash
    kind = kind_of_end(crash)
    print_title(console, kind, _KINDS[kind], headline(report.crash))
    width = body_width(console)
    for diagnosis in report.diagnoses:
        for section in _diagnosis(diagnosis):
            print_section(console, section)
    print_section(console, Section("not", _ruled_out(report), spaced=False))
    facts = details.sections if verbose else _stacks
    for section in (*_summary(crash), *facts(crash, width), _memory(crash)):
        print_section(console, section)
    print_section(console, Section("missing", [words(gap, QUIET) for gap in crash.gaps]))
    print_section(console, Section("report", _stored(stored, verbose)))


def _diagnosis(diagnosis: Diagnosis) -> Iterator[Section]:
    title = words(f"{diagnosis.code} {diagnosis.title}", OWN)
    sure = words(f"  ({min(max(diagnosis.confidence, 0.0), 1.0):.0%} sure)", QUIET)
    yield Section("cause", [Text.assemble(title, sure)])
    yield Section(
        "because",
        [Text.assemble(words(item.fact), words(f"  [{item.source}]", QUIET)) for item in diagnosis.evidence],
        spaced=False,
    )
    fixes = []
    for fix in diagnosis.fixes:
        fixes.append(Text.assemble(words(fix.title, "green"), words(f"  ({fix.grade})", QUIET)))
        fixes += [words(fix.detail)] if fix.detail else []
    yield Section("fix", fixes, spaced=False)


def _ruled_out(report: Report) -> list[Text]:
    return [words(f"{other.cause}: {other.because}", QUIET) for other in report.ruled_out[:_RULED_OUT_SHOWN]]


def _summary(crash: Crash) -> Iterator[Section]:
    yield Section("fault", _fault(crash))
    yield Section("because", _killed(crash))
    yield Section("at", _source(crash))
    yield Section("said", _said(crash))
    yield Section("thrown", _thrown(crash))
    yield Section("children", [words(headline(child)) for child in crash.children])


def _stacks(crash: Crash, width: int) -> Iterator[Section]:
    for index, thread in enumerate(shown_threads(crash)):
        yield Section("stack" if index == 0 else "", stack(thread, crash, width))
    yield Section("others", other_threads(crash))


def _memory(crash: Crash) -> Section:
    line = memory_in_words(crash)
    return Section("memory", [words(line)] if line else [])


def _fault(crash: Crash) -> list[Text]:
    if crash.fault is None:
        return []
    rows = [words(fault_in_words(crash.fault, crash))]
    if crash.also_faulted:
        rows.append(words(f"{count(len(crash.also_faulted), 'other thread')} crashed at the same time"))
    return rows


def _killed(crash: Crash) -> list[Text]:
    if crash.outcome.kind != "signal" or crash.outcome.signal != "SIGKILL":
        return []
    proof = memory_kill(crash)
    if proof is None and no_memory_kill(crash):
        proof = "the cgroup counted no out-of-memory kill while it ran"
    return [words(proof)] if proof else []


def _source(crash: Crash) -> list[Text]:
    frame = user_frame(crash)
    if frame is None:
        return []
    lines = excerpt(frame, crash)
    if not lines:
        return []
    where = f"{short_path(frame.file or '', crash)}:{frame.line}"
    digits = len(str(lines[-1].number))
    rows = [unbroken(words(where, OWN), words(f"  in {frame.function}", QUIET))]
    for line in lines:
        rows += _source_rows(line, line.number == frame.line, digits)
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


def _said(crash: Crash) -> list[Text]:
    if crash.outcome.kind == "exception":
        return []  # its traceback is the last thing on the screen, and the title repeats the message
    told = abort_reason(crash) if crash.fault and crash.fault.signal == "SIGABRT" else None
    return [words(line) for line in last_words(crash) if line != told]


def _thrown(crash: Crash) -> list[Text]:
    rows = []
    for thrown in crash.exceptions[:_EXCEPTIONS_SHOWN]:
        text = thrown.type if thrown.message in (None, thrown.type) else f"{thrown.type}: {thrown.message}"
        when = f"  {duration(thrown.seconds_before)} before the end, thread {thrown.thread}"
        rows.append(Text.assemble(words(text), words(when, QUIET)))
    return rows


def _stored(stored: Path | None, verbose: bool) -> list[Text]:
    if stored is None:
        return []
    home = str(Path.home())
    path = str(stored)
    shown = "~" + path[len(home) :] if path.startswith(home + "/") else path
    hint = [] if verbose else [words("`faultlens show -v` tells everything that was recorded", QUIET)]
    return [unbroken(words(shown, limit=PATH_LIMIT)), *hint]
