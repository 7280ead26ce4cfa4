"""How a text report is laid out: labels in a narrow column, facts beside them, every line safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from faultlens.text.safe import LINE_LIMIT, one_line, shorten

LABEL_WIDTH = 8
GAP = 2
_NARROWEST, _WIDEST = 30, 120
_LONGEST_LEAD = 12
_MARK = "· "
_BETWEEN = " · "
PATH_LIMIT = 4096

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


def pairs(rows: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Names and values in two columns."""
    names = [one_line(name) for name, _ in rows]
    room = min(max(map(len, names), default=0), width // 2)
    return [
        unbroken(words(shorten(name, room).ljust(room + GAP), QUIET), words(value, limit=PATH_LIMIT))
        for name, (_, value) in zip(names, rows, strict=True)
    ]


def body_width(console: Console) -> int:
    return max(min(console.width, _WIDEST) - LABEL_WIDTH - GAP, _NARROWEST)


class Title(NamedTuple):
    """ "kind: text (aside)"."""

    lead: Text
    text: Text

    def lines(self, width: int) -> list[Text]:
        """Wrapped under its own beginning where that leaves room."""
        indent = len(self.lead) if len(self.lead) <= _LONGEST_LEAD else GAP
        return wrap(Text.assemble(self.lead, self.text), max(min(width, _WIDEST), _NARROWEST), indent)

    def line(self, width: int) -> Text:
        whole = Text.assemble(self.lead, self.text)
        whole.truncate(width, overflow="ellipsis")
        return whole


def title(kind: str, style: str, text: str, aside: str = "", limit: int = 4 * LINE_LIMIT) -> Title:
    said = words(f" ({aside})" if aside else "", QUIET)
    return Title(Text(f"{kind}: ", style), Text.assemble(words(text, OWN, limit), said))


def print_title(console: Console, kind: str, style: str, text: str, aside: str = "") -> None:
    for line in title(kind, style, text, aside).lines(console.width):
        print_line(console, line)


def section_lines(console: Console, section: Section) -> Iterator[Text]:
    if not section.rows:
        return
    if section.spaced:
        yield Text()
    label = Text(section.label.rjust(LABEL_WIDTH) + " " * GAP, LABEL)
    for row in section.rows:
        for line in _lines(row, body_width(console), max(console.width - len(label), _NARROWEST)):
            yield Text.assemble(label, line)
            label = Text(" " * len(label))


def print_section(console: Console, section: Section) -> None:
    for line in section_lines(console, section):
        print_line(console, line)


def wrap(text: Text, width: int, indent: int = 0) -> list[Text]:
    """Lines broken between words only: a path that is too long stays whole (rich would cut it)."""
    breaks = []
    column = 0
    for word in re.finditer(r"\S+\s*", text.plain):
        if column > indent and column + cell_len(word.group().rstrip()) > width:
            breaks.append(word.start())
            column = indent
        column += cell_len(word.group())
    first, *others = text.divide(breaks)
    return [first, *(Text.assemble(" " * indent, line) for line in others)]


def items(rows: Sequence[Text], width: int) -> list[Text]:
    """The rows as a list: a mark before each, further lines indented under the first."""
    marked = (Text.assemble((_MARK, QUIET), row) for row in rows)
    return [unbroken(line) for row in marked for line in wrap(row, width, len(_MARK))]


def flow(pieces: Sequence[str], width: int, lead: str = "") -> list[Text]:
    """Pieces side by side with a mark between them, broken between pieces only, further rows under the first."""
    rows: list[str] = []
    room = width - len(lead)
    for piece in map(one_line, pieces):
        if rows and cell_len(rows[-1]) + len(_BETWEEN) + cell_len(piece) <= room:
            rows[-1] += _BETWEEN + piece
        else:
            rows.append(piece)
    shown = [words(row, limit=PATH_LIMIT) for row in rows]
    return [unbroken(Text(" " * len(lead) if index else lead, QUIET), row) for index, row in enumerate(shown)]


def _lines(row: Text, width: int, screen: int) -> list[Text]:
    """Prose is wrapped where it can be read; what is cut, such as source, has the whole screen."""
    if not row.no_wrap:
        return wrap(row, width)
    if row.overflow == "ellipsis":
        row.truncate(screen, overflow="ellipsis")
    return [row]


def print_line(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, no_wrap=True, overflow="ignore", crop=False, highlight=False)
