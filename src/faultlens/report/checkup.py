"""A check-up as text: one line per check with a mark, then each finding with its proof and what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from faultlens.records.diagnosis import Evidence
from faultlens.records.finding import NOT_GIVEN, Checkup, Examination, Finding
from faultlens.records.severity import number_of
from faultlens.report.page import (
    ALARM,
    GAP,
    OWN,
    PATH_LIMIT,
    QUIET,
    WARNING,
    Section,
    body_width,
    items,
    print_line,
    print_section,
    print_title,
    unbroken,
    words,
    wrap,
)
from faultlens.text.quantities import count

_MARKS = {"ok": ("✓", "green"), "warning": ("!", WARNING), "error": ("✗", ALARM), "skipped": ("·", QUIET)}
_EVIDENCE_SHOWN = 6
_FIXES_SHOWN = 3


def render(checkup: Checkup, *, console: Console, verbose: bool = False) -> None:
    """Print the check-up. `verbose` adds what each check saw, and all evidence and fixes."""
    print_line(console, Text.assemble(*_target(checkup)))
    print_line(console, Text())
    room = max((len(each.check) for each in checkup.examinations), default=0)
    for examination in checkup.examinations:
        _line(console, examination, room, verbose)
        for detail in examination.details if verbose else ():
            _under(console, words(detail, QUIET, PATH_LIMIT), room)
    for finding in checkup.findings:
        print_line(console, Text())
        _finding(console, finding, verbose)
    print_line(console, Text())
    for line in _closing(checkup, verbose):
        print_line(console, words(line, QUIET))


def _target(checkup: Checkup) -> Iterator[Text]:
    yield words(f"Python {checkup.version or '?'}", OWN)
    yield words(f" ({checkup.python})", QUIET, PATH_LIMIT)
    yield words(f" · TensorFlow {checkup.tensorflow}" if checkup.tensorflow else " · no TensorFlow", OWN)


def _line(console: Console, examination: Examination, room: int, verbose: bool) -> None:
    """One line each, cut at the margin: a finding is told in full below, the rest with -v."""
    mark, style = _MARKS[examination.mark]
    quiet = QUIET if examination.mark == "skipped" else ""
    head = Text.assemble("  ", (mark, style), " ", words(examination.check.ljust(room + GAP), quiet))
    summary, width = words(examination.summary, quiet), max(console.width - len(head), 30)
    if not verbose:
        summary.truncate(width, overflow="ellipsis")
    for line in wrap(summary, width):
        print_line(console, Text.assemble(head, line))
        head = Text(" " * len(head))


def _under(console: Console, text: Text, room: int) -> None:
    head = " " * (4 + room + GAP)
    for line in wrap(text, max(console.width - len(head), 30)):
        print_line(console, Text.assemble(head, line))


def _finding(console: Console, finding: Finding, verbose: bool) -> None:
    style = ALARM if finding.severity == "error" else WARNING
    print_title(console, f"{finding.severity}[{finding.check}]", style, finding.title)
    width = body_width(console)
    evidence = finding.evidence if verbose else finding.evidence[:_EVIDENCE_SHOWN]
    proof = [Text.assemble(words(item.fact), words(f"  [{_source(item, verbose)}]", QUIET)) for item in evidence]
    left = len(finding.evidence) - len(evidence)
    more = [words(f"{left} more (-v)", QUIET)] if left else []
    print_section(console, Section("because", items([*proof, *more], width), spaced=False))
    print_section(console, Section("fix", _fixes(finding, width, verbose), spaced=False))
    if verbose and finding.causes:
        print_section(console, Section("leads to", [words(", ".join(finding.causes), QUIET)], spaced=False))


def _source(item: Evidence, verbose: bool) -> str:
    """Files of packages are known by their place among the packages."""
    packages, _, inside = item.source.rpartition("-packages/")
    return inside if packages and not verbose else item.source


def _fixes(finding: Finding, width: int, verbose: bool) -> list[Text]:
    rows: list[Text] = []
    for fix in finding.fixes if verbose else finding.fixes[:_FIXES_SHOWN]:
        grade = "" if fix.grade == "safe" else f"  ({fix.grade})"
        rows += items([Text.assemble(words(fix.title, "green"), words(grade, QUIET))], width)
        rows += [unbroken(Text("  "), line) for line in wrap(words(fix.detail), width - 2) if fix.detail]
        if fix.command:
            rows.append(unbroken(Text("  $ ", QUIET), words(fix.command, limit=PATH_LIMIT)))
    return rows


def _closing(checkup: Checkup, verbose: bool) -> Sequence[str]:
    findings = checkup.findings
    errors = number_of("error", findings)
    warnings = len(findings) - errors
    skipped = sum(each.mark == "skipped" and not each.summary.startswith(NOT_GIVEN) for each in checkup.examinations)
    if not findings and skipped:
        lines = [f"Nothing found that will crash in what was checked; {count(skipped, 'check')} could not be made (·)."]
    elif not findings:
        lines = ["Nothing found that will crash."]
    else:
        lines = [f"{count(errors, 'error')}, {count(warnings, 'warning')}."]
    if any(finding.repair for finding in findings):
        lines.append("The same command with `--fix` can repair it; with `--dry-run` it shows how.")
    if checkup.tensorflow is None:
        lines.append("TensorFlow is not installed here; `--python` names another environment.")
    if not verbose:
        deep = "" if checkup.deep else "; `--deep` reads whole libraries and tries the import"
        lines.append(f"`-v` tells what each check saw{deep}.")
    return lines
