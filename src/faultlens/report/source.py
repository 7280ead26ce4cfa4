"""The lines of source around a frame, from the copy that was kept with the crash."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.records.crash import Crash, Frame
from faultlens.supervise.condensed import LINES_AFTER, LINES_BEFORE

_TAB = " " * 4


class SourceLine(NamedTuple):
    number: int
    text: str
    # Columns of the failing expression; None on the other lines, and where it is not known.
    underline: tuple[int, int] | None = None


def excerpt(frame: Frame, crash: Crash, before: int = LINES_BEFORE) -> list[SourceLine]:
    """A few lines around the failing one, less their common indentation; none when they are not known."""
    if frame.file not in crash.sources or frame.line is None:
        return []
    lines = crash.sources[frame.file].split("\n")
    if not 0 < frame.line <= len(lines):
        return []
    numbers = range(max(1, frame.line - before), min(len(lines), frame.line + LINES_AFTER) + 1)
    indent = _common_indent([lines[number - 1] for number in numbers])
    shown = []
    for number in numbers:
        text = lines[number - 1]
        underline = _underline(frame, text, indent) if number == frame.line else None
        shown.append(SourceLine(number, text[indent:].replace("\t", _TAB), underline))
    return _without_blank_ends(shown, frame.line)


def _common_indent(lines: list[str]) -> int:
    """Counted in characters: the same whitespace begins each of the lines."""
    filled = [line for line in lines if line.strip()]
    first = filled[0] if filled else ""
    indent = len(first) - len(first.lstrip())
    while not all(line.startswith(first[:indent]) for line in filled):
        indent -= 1
    return indent


def _underline(frame: Frame, text: str, indent: int) -> tuple[int, int] | None:
    if frame.column is None or frame.end_column is None:
        return None
    start, end = (_shown_column(text, indent, column) for column in (frame.column, frame.end_column))
    if end <= start:  # the expression ends on a later line
        end = _shown_column(text.rstrip(), indent, len(text.encode()))
    return (start, end) if start < end else None


def _shown_column(text: str, indent: int, column: int) -> int:
    """Python counts columns in bytes of UTF-8."""
    before = text.encode()[:column].decode(errors="ignore")
    return len(before[indent:].replace("\t", _TAB))


def _without_blank_ends(lines: list[SourceLine], keep: int) -> list[SourceLine]:
    while lines and lines[0].number < keep and not lines[0].text.strip():
        lines = lines[1:]
    while lines and lines[-1].number > keep and not lines[-1].text.strip():
        lines = lines[:-1]
    return lines
