"""The report on a crash as text: the verdict, the user's line, its proof and fix; then the fault and the stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from faultlens.causes import find
from faultlens.clues.fenced import FENCE, block_of, facts_of, without_hit
from faultlens.clues.last_words import abort_reason, last_words
from faultlens.clues.leaks import in_full
from faultlens.crash import CppException, Crash, Saving
from faultlens.diagnosis import Diagnosis
from faultlens.report import details, place, timeline
from faultlens.report.facts import thrown
from faultlens.report.headline import headline, kind_of_end, memory_kill, no_memory_kill
from faultlens.report.kernels import contents_in_words
from faultlens.report.page import (
    ALARM,
    PATH_LIMIT,
    QUIET,
    WARNING,
    Section,
    body_width,
    items,
    print_section,
    print_title,
    unbroken,
    words,
    wrap,
)
from faultlens.report.quantities import count
from faultlens.report.reproducer import HINT, reproducer_in_words, script_lines, worth_reproducing
from faultlens.report.saves import saves_now
from faultlens.report.threads import other_threads, shown_threads, stack
from faultlens.report.verdict import (
    is_unknown,
    subject,
    sure,
    tempting,
    thrown_at_the_end,
    verdict,
)
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.reportfile import Report
from faultlens.safe_text import ELLIPSIS, one_line

_EXCEPTIONS_SHOWN = 3
_EVIDENCE_SHOWN = 12
_FIXES_SHOWN = 6
_RULED_OUT_SHOWN = 5
_RIVALS_SHOWN = 2
_SCRIPT_LINES, _SHORT_SCRIPT = 200, 12
_KINDS = {
    "crash": ALARM,
    "killed": ALARM,
    "ended": WARNING,
    "hang": WARNING,
    "exception": ALARM,
    "exit": WARNING,
    "ok": "bold green",
}


def render(
    report: Report,
    *,
    verbose: bool = False,
    console: Console,
    stored: Path | None = None,
    saves_today: Saving | None = None,
) -> None:
    """Print the report. `stored` is where it is kept; `verbose` adds every fact there is; `saves_today` is how the
    saves look now that were looked at when the program ended."""
    crash = subject(report)
    kind = kind_of_end(crash)
    width = body_width(console)
    found = verdict(report)
    if found is None:
        print_title(console, kind, _KINDS[kind], headline(report.crash))
        proof = Section("because", _killed(crash))
        opening = [Section("fault", _fault(crash)), proof, *place.sections(report, width)]
    else:
        level = "error" if _KINDS[kind] == ALARM else "warning"
        print_title(
            console,
            f"{level}[{one_line(found.code, 12)}] {one_line(found.cause, 60)}",
            _KINDS[kind],
            found.title,
            sure(found),
        )
        opening = [*_verdict(report, found, width), Section("happened", [words(headline(report.crash), limit=800)])]
        opening.append(Section("fault", _fault(crash)))
    opening.append(Section("hunt", [words(line) for line in _hunt(crash, found)]))
    facts = details.sections if verbose else _stacks
    for section in (*opening, *_heard(report, verbose), *facts(crash, width), _memory(crash, width, verbose)):
        print_section(console, section)
    if saves_today is not None:
        print_section(console, Section("now", [words(line) for line in saves_now(saves_today, crash)]))
    print_section(console, Section("missing", [words(gap, QUIET) for gap in crash.gaps]))
    print_section(console, Section("repro", _reproducer(report, verbose)))
    print_section(console, Section("report", [*_stored(stored), *_hints(report, verbose, stored is not None)]))


def _verdict(report: Report, found: Diagnosis, width: int) -> Iterator[Section]:
    """The user's line, the proof, what to change, and what it was not."""
    yield from place.sections(report, width)
    proof = [
        Text.assemble(words(item.fact), words(f"  [{item.source}]", QUIET)) for item in found.evidence[:_EVIDENCE_SHOWN]
    ]
    yield Section("because", items(proof, width))
    yield Section("next" if is_unknown(found) else "fix", _fixes(found, width))
    rivals = [f"{other.code} {other.cause}: {other.title} ({sure(other)})" for other in report.diagnoses[1:]]
    yield Section("or", items([words(rival, QUIET) for rival in rivals[:_RIVALS_SHOWN]], width))
    not_so = [words(f"{other.cause}: {other.because}", QUIET) for other in tempting(report, _RULED_OUT_SHOWN)]
    yield Section("not", items(not_so, width))


def _fixes(found: Diagnosis, width: int) -> list[Text]:
    rows = []
    for fix in found.fixes[:_FIXES_SHOWN]:
        grade = words("" if is_unknown(found) else f"  ({fix.grade})", QUIET)
        rows += items([Text.assemble(words(fix.title, "green"), grade)], width)
        rows += [unbroken(Text("  "), line) for line in wrap(words(fix.detail), width - 2) if fix.detail]
        if fix.command:
            rows.append(unbroken(Text("  $ ", QUIET), words(fix.command, limit=PATH_LIMIT)))
    return rows


def _heard(report: Report, verbose: bool) -> Iterator[Section]:
    """What the program and those below it said."""
    crash = subject(report)
    yield Section("said", _said(crash))
    chosen = crash.exceptions if verbose else thrown_at_the_end(report)[:_EXCEPTIONS_SHOWN]
    yield Section("thrown", [_thrown(exception) for exception in chosen])
    yield Section("children", [words(headline(child)) for child in crash.children])


def _stacks(crash: Crash, width: int) -> Iterator[Section]:
    for index, thread in enumerate(shown_threads(crash)):
        yield Section("stack" if index == 0 else "", stack(thread, crash, width))
    yield Section("others", other_threads(crash))


def _memory(crash: Crash, width: int, verbose: bool) -> Section:
    lines = [memory_in_words(crash), *(in_full(growth) for growth in crash.growth)]
    matters = bool(crash.growth or crash.stop_request or memory_kill(crash)) and not verbose  # -v has it anyway
    course = timeline.rows(crash, width) if matters else []
    return Section("memory", [*(words(line) for line in lines if line), *course])


def _fault(crash: Crash) -> list[Text]:
    if crash.fault is None:
        return []
    rows = [words(fault_in_words(crash.fault, crash))]
    if crash.also_faulted:
        rows.append(words(f"{count(len(crash.also_faulted), 'other thread')} crashed at the same time"))
    return rows


def _hunt(crash: Crash, found: Diagnosis | None) -> list[str]:
    """What the fence saw, where the verdict does not rest on it."""
    block, told = block_of(crash), without_hit(crash)
    if block is None or (found and any(item.source == FENCE for item in found.evidence)):
        return [told] if told else []
    return [fact for fact, _ in facts_of(block)]


def _killed(crash: Crash) -> list[Text]:
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


def _reproducer(report: Report, verbose: bool) -> list[Text]:
    found = report.reproducer
    if found is None:
        return []
    rows = [words(reproducer_in_words(found))]
    lines = script_lines(found)
    if verbose or len(lines) <= _SHORT_SCRIPT:
        rows += [unbroken(Text("  "), words(line, limit=PATH_LIMIT)) for line in lines[:_SCRIPT_LINES]]
        if len(lines) > _SCRIPT_LINES:
            rows.append(words(f"  {ELLIPSIS} {count(len(lines) - _SCRIPT_LINES, 'more line')}", QUIET))
    return rows


def _hints(report: Report, verbose: bool, stored: bool) -> list[Text]:
    hints = []
    found = verdict(report)
    if found and find(found.code):
        hints.append(f"`faultlens causes {found.code}` explains this cause")
    if stored and not verbose:
        hints.append("`faultlens show -v` tells everything that was recorded")
    if stored and worth_reproducing(report):
        hints.append(HINT)
    if contents := contents_in_words(report.crash):
        hints.append(contents)
    return [words(hint, QUIET) for hint in hints]
