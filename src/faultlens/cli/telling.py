"""What is told of a program's end, and kept."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from faultlens.cli import output
from faultlens.cli.deaths import in_one_line, say
from faultlens.diagnosis.evidence.children import has_survived, subject_of

if TYPE_CHECKING:
    from faultlens.cli.deaths import Deaths
    from faultlens.records.crash import Crash
    from faultlens.records.report_file import Report

# Ends that people and schedulers bring about on purpose: one line is enough.
ASKED_FOR = {"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE"}
SPEAK_FOR_THEMSELVES = {"python-exception", "clean-exit", "killed-from-outside", "signal-raised-by-program"}
SURE = 0.7
MAX_CHILDREN_SHOWN, MAX_CHILDREN_EXAMINED, MAX_LINES = 3, 10, 5


def tell(crash: Crash, arguments: argparse.Namespace, deaths: Deaths) -> None:
    """`deaths`: of processes below the program, with the reports that were kept of them already."""
    if arguments.no_sources:
        from faultlens.supervise.sources import without_sources

        crash = without_sources(crash)
    report = examined(crash)
    try:
        output.write_files(report, arguments, quiet=arguments.quiet or not (worth_telling(report) or arguments.verbose))
    finally:  # a file that cannot be written does not cost the rest
        # A program that ended well needs no verdict, but its children that died do.
        if has_survived(crash) and crash.children:
            _tell_below(crash, arguments, deaths)
        elif worth_telling(report) or arguments.verbose:
            _tell(report, arguments, deaths)
            _tell_others(crash, {subject_of(crash).pid}, arguments, deaths)
        deaths.settle()


def _tell_below(crash: Crash, arguments: argparse.Namespace, deaths: Deaths) -> None:
    """Of processes that a program survived. Some die on purpose: one line is enough for them, if it is one."""
    from faultlens.report.headline import headline

    whole: list[Report] = []
    for child in crash.children[:MAX_CHILDREN_EXAMINED]:
        report = examined(child)
        if not (worth_telling(report) or arguments.verbose):
            continue
        if not _speaks_for_itself(report) or child.times > 1 or arguments.verbose:
            whole.append(report)
        elif not arguments.no_save:
            _kept(report, deaths)
        if len(whole) == MAX_CHILDREN_SHOWN:
            break
    if whole and not arguments.quiet:
        say(f"{headline(replace(crash, children=()))}, but below it:")
    for report in whole:
        _tell(report, arguments, deaths)
    told = {report.crash.pid for report in whole}
    if not whole:  # what was said when it happened needs no closing words
        told = {child.pid for child in crash.children if deaths.was_told(child.pid)}
    _tell_others(crash, told, arguments, deaths)


def _tell_others(crash: Crash, told: set[int | None], arguments: argparse.Namespace, deaths: Deaths) -> None:
    """A line for each process that died and is not told of in full: whoever reads the end only must learn of all."""
    others = [child for child in crash.children if _died(child) and child.pid not in told]
    deaths.settle()
    if arguments.quiet:
        return
    for child in others[:MAX_LINES]:
        stored = deaths.kept(child.pid)
        report = _read(stored) or examined(child)
        if stored is None and not arguments.no_save:
            stored = _kept(report, deaths)
        again = f" ({child.times} times)" if child.times > 1 else ""
        say(f"also {in_one_line(report, stored, again)}")
    if more := sum(child.times for child in others[MAX_LINES:]):
        say(f"and {more} more died: faultlens show --list")


def _died(child: Crash) -> bool:
    """Not those that were looked at when the time was up, nor those that were asked to end."""
    by = child.outcome.signal if child.outcome.kind == "signal" else None
    return not child.was_running and (child.fault is not None or by is not None) and by not in ASKED_FOR


def _read(stored: Path | None) -> Report | None:
    from faultlens.errors import FaultlensError
    from faultlens.records import report_file

    try:
        return report_file.read(stored) if stored else None
    except FaultlensError:
        return None


def examined(crash: Crash) -> Report:
    """The doctor is asked only where there is something to tell."""
    from faultlens.report.make import make_report
    from faultlens.supervise.dotenv import secrets_beside

    report = make_report(crash, secrets=secrets_beside(crash.program.directory))
    if not worth_telling(report):
        return report
    from faultlens.doctor.aftermath import with_findings
    from faultlens.report.make import reconsidered
    from faultlens.store.earlier import earlier_causes

    return reconsidered(with_findings(report), earlier_causes(report))


def _tell(report: Report, arguments: argparse.Namespace, deaths: Deaths) -> None:
    stored = None if arguments.no_save else _kept(report, deaths)
    if not arguments.quiet:
        sys.stdout.flush()
        name = _name(stored) if stored else ""
        output.render(report, sys.stderr, verbose=arguments.verbose, stored=stored, name=name)


def _name(stored: Path) -> str:
    """What `faultlens show` needs to find it: nothing, if it is the latest."""
    from faultlens.store import folder

    return "" if folder.find(None) == stored else folder.identity(stored)


def _kept(report: Report, deaths: Deaths) -> Path | None:
    """In the place of what was kept when the process died: one crash, one report."""
    from faultlens.errors import FaultlensError
    from faultlens.report.verdict import subject
    from faultlens.store import folder

    path = deaths.kept(subject(report).pid)
    if path is None:
        return output.save(report)
    try:
        folder.update(path, report)
    except FaultlensError as error:
        print(f"faultlens: {error}", file=sys.stderr)
    return path


def worth_telling(report: Report) -> bool:
    """Exit codes and Python exceptions speak for themselves, unless there is more behind them than they say; so do
    ends that somebody asked for."""
    crash = report.crash
    if crash.stop_request and crash.outcome.kind != "ok":
        return True
    if (crash.hunt and crash.hunt.block) or crash.children or crash.fault or crash.was_running or _lost_a_save(crash):
        return True
    if crash.outcome.kind == "signal":
        return crash.outcome.signal not in ASKED_FOR
    best = report.diagnoses[0] if report.diagnoses else None
    return best is not None and not _speaks_for_itself(report) and best.confidence >= SURE


def _speaks_for_itself(report: Report) -> bool:
    return bool(report.diagnoses) and report.diagnoses[0].cause in SPEAK_FOR_THEMSELVES


def _lost_a_save(crash: Crash) -> bool:
    """Whoever asked for the end did not ask for that."""
    return crash.saving is not None and any(save.current and save.whole is False for save in crash.saving.saves)
