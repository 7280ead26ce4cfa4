"""What a report says at once, on some twenty lines: the user's line, what is wrong, the fix, where to read on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from faultlens.diagnosis.causes import find
from faultlens.diagnosis.evidence.children import crashed_child
from faultlens.diagnosis.evidence.leaks import in_full
from faultlens.records.crash import Crash, Saving
from faultlens.records.diagnosis import Diagnosis, Evidence
from faultlens.records.report_file import Report
from faultlens.report import place, timeline
from faultlens.report.full import fault, fixes, hunted, killed
from faultlens.report.headline import headline, memory_kill
from faultlens.report.page import QUIET, Section, fixed, flow, items, words
from faultlens.report.reproducer import reproducer_in_words, worth_reproducing
from faultlens.report.saves import saves_now
from faultlens.report.verdict import is_unknown, subject, sure, verdict
from faultlens.text.safe import ELLIPSIS, LINE_LIMIT, one_line

_FACTS, _FEWEST, _LINES_OF_FACT = 3, 2, 3
_FIXES = 2
_ROWS = 3  # of what has no place in most reports
_RIVAL = 0.15  # less sure than the verdict: less still is for -v
# How and where the process died: said by the title and the line, and left out where there is more to say.
_BARE_END = frozenset({"siginfo", "wait status", "native stack"})
_RAISED = "traceback"


def sections(
    report: Report, width: int, stored: Path | None, name: str, saves_today: Saving | None
) -> Iterator[Section]:
    """`stored` and `name`: where the report is kept, and what it is called on the command line."""
    crash, found = subject(report), verdict(report)
    yield from place.in_brief(report, width)
    if crash is not report.crash:
        yield Section("happened", [words(headline(report.crash))])
    elif child := crashed_child(crash):
        yield Section("before", [words(f"{headline(child)}; the program went on")])
    if crash.times > 1:
        yield Section("repeats", [words(f"{crash.times} processes of the program died here, one after the other")])
    if found:
        because = _telling(found, raised=crash.outcome.kind == "exception")
        yield Section("because", items([_cut(item.fact, width) for item in because], width))
        yield Section("or", [fixed(words(rival, QUIET)) for rival in _rivals(report, found)], spaced=False)
        yield Section("next" if is_unknown(found) else "fix", fixes(found, width, _FIXES, ["safe"]))
    else:
        yield Section("fault", fault(crash))
        yield Section("because", killed(crash))
    yield Section("hunt", _some([words(line) for line in hunted(crash, found)]))
    yield Section("memory", _memory(crash, found, width))
    if found is None or is_unknown(found):
        yield Section("missing", _some([words(gap, QUIET) for gap in crash.gaps]))
    if saves_today is not None:
        yield Section("now", _some([words(line) for line in saves_now(saves_today, crash)]))
    if report.reproducer:
        yield Section("repro", [fixed(words(reproducer_in_words(report.reproducer)))])
    yield Section("more", flow(list(_read_on(report, stored, name)), width))


def _telling(found: Diagnosis, raised: bool) -> list[Evidence]:
    """The facts that say most to whoever wrote the program, in their order. What was `raised` has just been shown."""
    new = [item for item in found.evidence if not _in_title(item.fact, found.title)] or list(found.evidence)
    shown = (
        _BARE_END | {_RAISED} if raised and any(item.source not in _BARE_END | {_RAISED} for item in new) else _BARE_END
    )
    telling = [item for item in new if item.source not in shown][:_FACTS]
    bare = [item for item in new if item.source in _BARE_END]
    chosen = telling + bare[: max(_FEWEST - len(telling), 0)]
    return [item for item in new if item in chosen]


def _in_title(fact: str, title: str) -> bool:
    """ "Check failed: 4 vs. 3 (tensor.cc:1120)", of which the title has all but the last."""
    return fact in title or (fact.endswith(")") and fact.rpartition(" (")[0] in title)


def _cut(fact: str, width: int) -> Text:
    """Both ends of a long one, as whole words."""
    half = _LINES_OF_FACT * (width - 8) // 2  # words do not fill their lines
    fact = one_line(fact, LINE_LIMIT)
    if len(fact) > 2 * half:
        fact = f"{fact[:half].rpartition(' ')[0]} {ELLIPSIS} {fact[-half:].partition(' ')[2]}"
    return words(fact.strip())


def _rivals(report: Report, found: Diagnosis) -> list[str]:
    near = [other for other in report.diagnoses[1:2] if found.confidence - other.confidence <= _RIVAL]
    return [f"{other.code} {other.cause} ({sure(other)}): {other.title}" for other in near]


def _memory(crash: Crash, found: Diagnosis | None, width: int) -> list[Text]:
    """Where memory is what went wrong: how it went."""
    rows = [words(in_full(growth)) for growth in crash.growth[:_ROWS]] if found is None else []
    grew = any(growth.what == "memory" for growth in crash.growth)
    return [*rows, *(timeline.rows(crash, width) if grew or crash.stop_request or memory_kill(crash) else [])]


def _some(rows: Sequence[Text]) -> Sequence[Text]:
    return rows[:_ROWS]


def _read_on(report: Report, stored: Path | None, name: str) -> Iterator[str]:
    found = verdict(report)
    if stored:
        yield f"`faultlens show{f' {name}' if name else ''} -v`"
    if found and find(found.code):
        yield f"`faultlens causes {found.code}`"
    if stored and worth_reproducing(report):
        yield f"`faultlens repro{f' {name}' if name else ''}`"
