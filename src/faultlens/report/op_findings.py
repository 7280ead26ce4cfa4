"""What `faultlens op` found, as text: each finding in the manner of compilers, with its line and what to write."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from faultlens.records.op_finding import OpFinding, OpReport, Related, Span
from faultlens.records.severity import rank
from faultlens.report.page import ALARM, OWN, PATH_LIMIT, QUIET, WARNING, print_line, unbroken, words, wrap
from faultlens.sandbox.guest import confinement
from faultlens.text.quantities import count
from faultlens.text.safe import ELLIPSIS, one_line

_COLOURS = {"error": ALARM, "warning": WARNING, "note": QUIET}
_GUTTER = 5


def render(found: OpReport, *, console: Console, verbose: bool = False) -> None:
    shown = [each for each in found.findings if verbose or each.severity != "note"]
    for finding in sorted(shown, key=lambda each: (rank(each.severity), _order(each.span))):
        for line in _finding(finding, verbose, console.width):
            for row in (line,) if line.no_wrap else wrap(line, console.width, _indent(line)):
                print_line(console, row)
        print_line(console, Text())
    for line in _closing(found, len(found.findings) - len(shown)):
        for row in wrap(line, console.width):
            print_line(console, row)


def _indent(line: Text) -> int:
    """Further rows of a line begin two columns behind its first word."""
    return len(line.plain) - len(line.plain.lstrip()) + 2


def _order(span: Span | None) -> tuple[str, int, int]:
    return (span.path, span.line, span.column) if span else ("", 0, 0)


def _finding(finding: OpFinding, verbose: bool, width: int) -> Iterator[Text]:
    colour = _COLOURS[finding.severity]
    where = f"{finding.span.path}:{finding.span.line}:{finding.span.column}: " if finding.span else ""
    named = f"{finding.severity} {finding.code} {finding.rule}: "
    yield Text.assemble(words(where, OWN, PATH_LIMIT), words(named, colour), words(finding.title))
    if finding.span:
        yield from _excerpt(finding.span, colour, width)
    for related in finding.related:
        yield from _related(related, width)
    for evidence in finding.evidence:
        yield Text.assemble("  ", words(evidence.fact), words(f" ({evidence.source})", QUIET))
    if finding.called_from:
        place = finding.called_from
        yield Text.assemble("  called from ", words(f"{place.file}:{place.line}", OWN, PATH_LIMIT))
    for fix in finding.fixes:
        yield Text.assemble(words("  fix: ", "green"), words(fix.title))
        for line in (*fix.detail.splitlines(), *([fix.command] if fix.command else [])):
            yield unbroken(Text("       "), words(line, OWN, PATH_LIMIT))
    if finding.reproducer:
        yield Text("  shown by:")
        for line in finding.reproducer.splitlines():
            yield unbroken(Text("    "), words(line, OWN, PATH_LIMIT))
    if finding.report:
        yield Text.assemble("  the whole report: ", words(f"faultlens show {finding.report}", OWN))
    if verbose:
        yield words(f"  more: faultlens op check --explain {finding.code}", QUIET)


def _excerpt(span: Span, colour: str, width: int) -> Iterator[Text]:
    """The line, and what is meant of it underlined. Of a long line the part around it."""
    text = one_line(span.text.expandtabs(1), PATH_LIMIT).rstrip()
    if not text.strip():
        return
    begin = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line and span.end_column > span.column else len(text)
    end = min(end, len(text))
    room = max(width - _GUTTER - 3, 20)
    cut = 0
    if len(text) > room and end > room:
        cut = max(min(begin - room // 4, len(text) - room), 0)
    shown = (ELLIPSIS + text[cut + 1 :] if cut else text)[:room]
    if cut + room < len(text):
        shown = shown[:-1] + ELLIPSIS
    yield _row(str(span.line), Text(shown))
    if 0 <= begin < len(text):
        last = min(end - cut, room)
        marked = "^" + "~" * max(last - (begin - cut) - 1, 0)
        yield _row("", Text.assemble(" " * (begin - cut), words(marked, colour)))


def _row(number: str, text: Text) -> Text:
    return unbroken(words(f"{number.rjust(_GUTTER)} | ", QUIET), text)


def _related(related: Related, width: int) -> Iterator[Text]:
    span = related.span
    yield Text.assemble("  ", words(f"{span.path}:{span.line}: ", OWN, PATH_LIMIT), words(related.says))
    line = one_line(span.text.expandtabs(1), PATH_LIMIT).rstrip()
    if line.strip():
        room = max(width - _GUTTER - 3, 20)
        yield _row(str(span.line), Text(line if len(line) <= room else line[: room - 1] + ELLIPSIS))


def _closing(found: OpReport, hidden: int) -> Iterator[Text]:
    for line in found.done:
        yield words(line, QUIET)
    for line in found.skipped:
        yield words(f"not looked at: {line}", WARNING)
    if less := confinement.in_words(found.not_held):
        yield words(less, WARNING)
    parts = [count(found.errors, "error"), count(found.warnings, "warning")] if found.is_grave else []
    ops = f" of {', '.join(found.ops)}" if found.ops else ""
    where = f"{found.subject}{ops}"
    nothing = "Nothing wrong found in" if found.coverage == "whole" else "Nothing found in what could be looked at of"
    told = f"{' and '.join(parts)} in {where}" if parts else f"{nothing} {where}"
    yield words(told + (f"; {count(hidden, 'note')} (-v)" if hidden else "") + ".", "", PATH_LIMIT)
