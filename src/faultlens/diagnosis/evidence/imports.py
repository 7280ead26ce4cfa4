"""What the error output says about modules and libraries that could not be loaded."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.diagnosis.evidence.case import Case

_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_TRACEBACK = "Traceback (most recent call last):"
_UNDEFINED = re.compile(r"(?P<library>[^\s:'\"]*\.so[^\s:'\"]*): undefined symbol: (?P<symbol>[\w@.]+)")
_MISSING_VERSION = re.compile(
    r"(?P<library>[^\s:'\"]*\.so[^\s:'\"]*): version [`'](?P<symbol>[\w.]+)' not found"
    r" \(required by (?P<user>[^)\s]+)\)"
)


class Unresolved(NamedTuple):
    """A library that needs a symbol, or a version of symbols, which nobody offers."""

    library: str  # that needs it
    symbol: str
    provider: str | None = None  # that should have had it
    text: str = ""


def final_text(case: Case) -> str:
    """The traceback that ended the program with those it was chained to; all of stderr after a signal."""
    text = case.crash.output.stderr or ""
    if case.crash.outcome.kind != "exception":
        return text
    start = text.rfind(_TRACEBACK)
    while start > 0 and any(phrase in text[max(0, start - 200) : start] for phrase in _CHAINED):
        start = text.rfind(_TRACEBACK, 0, start)
    return text[max(start, 0) :]


def unresolved(case: Case) -> Unresolved | None:
    text = final_text(case)
    if match := _MISSING_VERSION.search(text):
        return Unresolved(match["user"], match["symbol"], match["library"], match[0])
    if match := _UNDEFINED.search(text):
        return Unresolved(match["library"], match["symbol"], None, match[0])
    return None


def line_at(text: str, match: re.Match[str]) -> str:
    end = text.find("\n", match.end())
    return text[text.rfind("\n", 0, match.start()) + 1 : end if end >= 0 else len(text)].strip()
