"""How a text report is laid out: labels in a narrow column, facts beside them, every line safe to print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from faultlens.report.safe_text import LINE_LIMIT, one_line, shorten

LABEL_WIDTH = 8
GAP = 2
_NARROWEST = 30

# The few styles there are.
ALARM = "bold red"
WARNING = "bold yellow"
LABEL = "cyan"
GUTTER = "blue"
OWN = "bold"
QUIET = "dim"


class Section(NamedTuple):
    """Facts under one label; nothing is printed when there are none."""

    label: str
    rows: Sequence[Text]
    spaced: bool = True  # an empty line before it


def words(text: str, style: str = "", limit: int = LINE_LIMIT) -> Text:
    """Foreign or own text as it may be printed: never obeyed by a terminal, never read as markup."""
    return Text(one_line(text, limit), style)


def fixed(*parts: Text) -> Text:
    """A row that is cut at the right margin rather than wrapped."""
    row = Text.assemble(*parts)
    row.no_wrap = True
    row.overflow = "ellipsis"
    return row


def unbroken(*parts: Text) -> Text:
    """A row that is neither wrapped nor cut: paths that people copy."""
    row = Text.assemble(*parts)
    row.no_wrap = True
    row.overflow = "ignore"
    return row


def pairs(rows: Sequence[tuple[str, str]], width: int, style: str = "") -> list[Text]:
    """Names and values in two columns."""
    room = min(max((len(one_line(name)) for name, _ in rows), default=0), width // 2)
    return [
        fixed(words(shorten(one_line(name), room).ljust(room + GAP), QUIET), words(value, style))
        for name, value in rows
    ]


def body_width(console: Console) -> int:
    return max(console.width - LABEL_WIDTH - GAP, _NARROWEST)


def print_title(console: Console, kind: str, style: str, text: str) -> None:
    lead = Text(f"{kind}: ", style)
    lines = words(text, "bold", 4 * LINE_LIMIT).wrap(
        console, max(console.width - len(lead), _NARROWEST), overflow="ignore"
    )
    for index, line in enumerate(lines):
        line.rstrip()
        _print(console, Text.assemble(lead if index == 0 else Text(" " * len(lead)), line))


def print_section(console: Console, section: Section) -> None:
    if not section.rows:
        return
    if section.spaced:
        _print(console, Text())
    label = Text(section.label.rjust(LABEL_WIDTH) + " " * GAP, LABEL)
    for row in section.rows:
        for line in _lines(console, row):
            _print(console, Text.assemble(label, line))
            label = Text(" " * len(label))


def _lines(console: Console, row: Text) -> list[Text]:
    width = body_width(console)
    if not row.no_wrap:
        lines = list(row.wrap(console, width, overflow="ignore"))
        for line in lines:
            line.rstrip()
        return lines
    if row.overflow == "ellipsis":
        row.truncate(width, overflow="ellipsis")
    return [row]


def _print(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, no_wrap=True, overflow="ignore", crop=False, highlight=False)
