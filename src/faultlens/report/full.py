"""The whole report on a crash as text: the verdict with all its proof, what it was not, then every fact there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from faultlens.diagnosis.causes import find
from faultlens.diagnosis.evidence.fenced import FENCE, block_of, facts_of, without_hit
from faultlens.diagnosis.evidence.last_words import abort_reason, last_words
from faultlens.diagnosis.evidence.leaks import in_full
from faultlens.records.crash import CppException, Crash, Saving
from faultlens.records.diagnosis import Diagnosis
from faultlens.records.report_file import Report
from faultlens.report import details, place
from faultlens.report.facts import thrown
from faultlens.report.headline import headline, memory_kill, no_memory_kill
from faultlens.report.kernels import contents_in_words
from faultlens.report.page import PATH_LIMIT, QUIET, Section, items, unbroken, words, wrap
from faultlens.report.reproducer import HINT, reproducer_in_words, script_lines, worth_reproducing
from faultlens.report.saves import saves_now
from faultlens.report.threads import other_threads, shown_threads, stack
from faultlens.report.verdict import is_unknown, subject, sure, tempting, verdict
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.text.quantities import count
from faultlens.text.safe import ELLIPSIS

_EVIDENCE_SHOWN = 12
_FIXES_SHOWN = 6
_RULED_OUT_SHOWN = 5
_RIVALS_SHOWN = 2
_SCRIPT_LINES = 200
_GRADES = ("safe", "needs thought")


def sections(report: Report, width: int, stored: Path | None, saves_today: Saving | None) -> Iterator[Section]:
    crash, found = subject(report), verdict(report)
    if found:
        yield from _verdict(report, found, width)
        yield Section("happened", [words(headline(report.crash), limit=800)])
    yield Section("fault", fault(crash))
    if found is None:
        yield Section("because", killed(crash))
        yield from place.sections(report, width)
    yield Section("hunt", [words(line) for line in hunted(crash, found)])
    yield from _heard(crash)
    yield from _stacks(crash, width)
    yield from details.sections(crash, width)
    yield Section("memory", _memory(crash))
    if saves_today is not None:
        yield Section("now", [words(line) for line in saves_now(saves_today, crash)])
    yield Section("missing", [words(gap, QUIET) for gap in crash.gaps])
    yield Section("repro", _reproducer(report))
    yield Section("report", [*_stored(stored), *_hints(report, stored is not None)])


def _verdict(report: Report, found: Diagnosis, width: int) -> Iterator[Section]:
    """The user's line, the proof, what to change, and what it was not."""
    yield from place.sections(report, width)
    proof = [
        Text.assemble(words(item.fact), words(f"  [{item.source}]", QUIET)) for item in found.evidence[:_EVIDENCE_SHOWN]
    ]
    yield Section("because", items(proof, width))
    yield Section("next" if is_unknown(found) else "fix", fixes(found, width))
    rivals = [f"{other.code} {other.cause}: {other.title} ({sure(other)})" for other in report.diagnoses[1:]]
    yield Section("or", items([words(rival, QUIET) for rival in rivals[:_RIVALS_SHOWN]], width))
    not_so = [words(f"{other.cause}: {other.because}", QUIET) for other in tempting(report, _RULED_OUT_SHOWN)]
    yield Section("not", items(not_so, width))


def fixes(found: Diagnosis, width: int, most: int = _FIXES_SHOWN, grades: Sequence[str] = _GRADES) -> list[Text]:
    """What to change; `grades`: those that are told."""
    rows = []
    for fix in found.fixes[:most]:
        grade = f"  ({fix.grade})" if fix.grade in grades and not is_unknown(found) else ""
        rows += items([Text.assemble(words(fix.title, "green"), words(grade, QUIET))], width)
        if fix.detail:
            rows += [unbroken(Text("  "), line) for line in wrap(words(fix.detail), width - 2)]
        if fix.command:
            rows.append(unbroken(Text("  $ ", QUIET), words(fix.command, limit=PATH_LIMIT)))
    return rows


def _heard(crash: Crash) -> Iterator[Section]:
    """What the program and those below it said."""
    yield Section("said", _said(crash))
    yield Section("thrown", [_thrown(exception) for exception in crash.exceptions])
    yield Section("children", [words(headline(child)) for child in crash.children])


def _stacks(crash: Crash, width: int) -> Iterator[Section]:
    for index, thread in enumerate(shown_threads(crash)):
        yield Section("stack" if index == 0 else "", stack(thread, crash, width))
    yield Section("others", other_threads(crash))


def _memory(crash: Crash) -> list[Text]:
    lines = [memory_in_words(crash), *(in_full(growth) for growth in crash.growth)]
    return [words(line) for line in lines if line]


def fault(crash: Crash) -> list[Text]:
    if crash.fault is None:
        return []
    rows = [words(fault_in_words(crash.fault, crash))]
    if crash.also_faulted:
        rows.append(words(f"{count(len(crash.also_faulted), 'other thread')} crashed at the same time"))
    return rows


def hunted(crash: Crash, found: Diagnosis | None) -> list[str]:
    """What the fence saw, where the verdict does not rest on it."""
    block, told = block_of(crash), without_hit(crash)
    if block is None or (found and any(item.source == FENCE for item in found.evidence)):
        return [told] if told else []
    return [fact for fact, _ in facts_of(block)]


def killed(crash: Crash) -> list[Text]:
    if crash.outcome.kind != "signal" or crash.outcome.signal != "SIGKILL":
        return []
    proof = memory_kill(crash)
    if proof is None and no_memory_kill(crash):
        proof = "the cgroup counted no out-of-memory kill while it ran"
    return [words(proof)] if proof else []


def _said(crash: Crash) -> list[Text]:
    if crash.outcome.kind == "exception":
        return []  # its traceback is the last thing on the screen, and the title repeats the message
    told = abort_reason(crash) if crash.fault and crash.fault.signal == "SIGABRT" else None
    return [words(line) for line in last_words(crash) if line != told]


def _thrown(exception: CppException) -> Text:
    what, when = thrown(exception)
    return Text.assemble(words(what), words(f"  {when}", QUIET))


def _stored(stored: Path | None) -> list[Text]:
    if stored is None:
        return []
    home = str(Path.home())
    path = str(stored)
    shown = "~" + path[len(home) :] if path.startswith(home + "/") else path
    return [unbroken(words(shown, limit=PATH_LIMIT))]


def _reproducer(report: Report) -> list[Text]:
    found = report.reproducer
    if found is None:
        return []
    lines = script_lines(found)
    rows = [words(reproducer_in_words(found))]
    rows += [unbroken(Text("  "), words(line, limit=PATH_LIMIT)) for line in lines[:_SCRIPT_LINES]]
    if len(lines) > _SCRIPT_LINES:
        rows.append(words(f"  {ELLIPSIS} {count(len(lines) - _SCRIPT_LINES, 'more line')}", QUIET))
    return rows


def _hints(report: Report, stored: bool) -> list[Text]:
    hints = []
    found = verdict(report)
    if found and find(found.code):
        hints.append(f"`faultlens causes {found.code}` explains this cause")
    if stored and worth_reproducing(report):
        hints.append(HINT)
    if contents := contents_in_words(report.crash):
        hints.append(contents)
    return [words(hint, QUIET) for hint in hints]
