"""What `faultlens op` found, as text: each finding in the manner of compilers, with its line and what to write."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from faultlens.op_findings import OpFinding, OpReport, Related, Span
from faultlens.report.page import ALARM, OWN, PATH_LIMIT, QUIET, WARNING, print_line, words, wrap
from faultlens.report.quantities import count

_COLOURS = {"error": ALARM, "warning": WARNING, "note": QUIET}
_RANKS = {"error": 0, "warning": 1, "note": 2}
_LINE_LIMIT = 160


def render(found: OpReport, *, console: Console, verbose: bool = False) -> None:
    shown = [each for each in found.findings if verbose or each.severity != "note"]
    for finding in sorted(shown, key=lambda each: (_RANKS[each.severity], _order(each.span))):
        for line in _finding(finding, verbose):
            for row in wrap(line, console.width) if line.plain.strip() else (line,):
                print_line(console, row)
        print_line(console, Text())
    for line in _closing(found, len(found.findings) - len(shown)):
        for row in wrap(line, console.width):
            print_line(console, row)


def _order(span: Span | None) -> tuple[str, int, int]:
    return (span.path, span.line, span.column) if span else ("", 0, 0)


def _finding(finding: OpFinding, verbose: bool) -> Iterator[Text]:
    colour = _COLOURS[finding.severity]
    where = f"{finding.span.path}:{finding.span.line}:{finding.span.column}: " if finding.span else ""
    named = f"{finding.severity} {finding.code} {finding.rule}: "
    yield Text.assemble(words(where, OWN, PATH_LIMIT), words(named, colour), words(finding.title))
    if finding.span:
        yield from _excerpt(finding.span, colour)
    for related in finding.related:
        yield from _related(related)
    for evidence in finding.evidence:
        yield Text.assemble("  ", words(evidence.fact), words(f" ({evidence.source})", QUIET))
    if finding.called_from:
        place = finding.called_from
        yield Text.assemble("  called from ", words(f"{place.file}:{place.line}", OWN, PATH_LIMIT))
    for fix in finding.fixes:
        yield Text.assemble(words("  fix: ", "green"), words(fix.title))
        for line in (*fix.detail.splitlines(), *([fix.command] if fix.command else [])):
            yield Text.assemble("       ", words(line, OWN, PATH_LIMIT))
    if finding.reproducer:
        yield Text("  shown by:")
        for line in finding.reproducer.splitlines():
            yield Text.assemble("    ", words(line, OWN, PATH_LIMIT))
    if finding.report:
        yield Text.assemble("  the whole report: ", words(f"faultlens show {finding.report}", OWN))
    if verbose:
        yield words(f"  more: faultlens op check --explain {finding.code}", QUIET)


def _excerpt(span: Span, colour: str) -> Iterator[Text]:
    """The line, and what is meant of it underlined."""
    if not span.text.strip():
        return
    number = str(span.line).rjust(5)
    text = span.text.replace("\t", " ").rstrip()[:_LINE_LIMIT]
    yield Text.assemble(words(f"{number} | ", QUIET), words(text, "", _LINE_LIMIT))
    if 0 < span.column <= len(text):
        end = span.end_column - 1 if span.end_line == span.line and span.end_column > span.column else len(text)
        marked = "^" + "~" * (min(end, len(text)) - span.column)
        yield Text.assemble(words(f"{' ' * 5} | ", QUIET), " " * (span.column - 1), words(marked, colour))


def _related(related: Related) -> Iterator[Text]:
    span = related.span
    yield Text.assemble("  ", words(f"{span.path}:{span.line}: ", OWN, PATH_LIMIT), words(related.says))
    if span.text.strip():
        yield Text.assemble(words(f"{str(span.line).rjust(5)} | ", QUIET), words(span.text.rstrip(), "", _LINE_LIMIT))


def _closing(found: OpReport, hidden: int) -> Iterator[Text]:
    for line in found.done:
        yield words(line, QUIET)
    for line in found.skipped:
        yield words(f"not looked at: {line}", WARNING)
    parts = [count(found.errors, "error"), count(found.warnings, "warning")] if found.errors or found.warnings else []
    ops = f" of {', '.join(found.ops)}" if found.ops else ""
    told = f"{' and '.join(parts)} in {found.subject}{ops}" if parts else f"Nothing wrong found in {found.subject}{ops}"
    yield words(told + (f"; {count(hidden, 'note')} (-v)" if hidden else "") + ".", "", PATH_LIMIT)
