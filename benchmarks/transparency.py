"""Real programs and test suites, alone and under `faultlens run`: same status, same output, same outcome of each test.

    python benchmarks/transparency.py               # all; writes docs/transparency.md
    python benchmarks/transparency.py --short       # those that take seconds; writes nothing
    python benchmarks/transparency.py --only NAME   # one, with what differs

Programs that this machine has not are named with the reason. The exit status is 1 if anything differs."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import grammar
import machine
from endings import HUNG, Ending, differences, ending
from generated import run_round
from undisturbed import PROGRAM_ROWS, SUITE_ROWS, Program, Suite, Words

T = TypeVar("T", Program, Suite)
PAGE = Path(__file__).parent.parent / "docs" / "transparency.md"
SECONDS = 120.0
SEED = 2026
SECONDS_OF_A_SUITE = 900.0
INTRODUCTION = """\
# Transparency

Made by `python benchmarks/transparency.py`, on {machine}; {seconds:.0f} s.

Each program is run alone and under `faultlens run`: the exit status (or signal), everything it writes, and the
processes it leaves behind must be the same; of a test suite, the outcome of each test. Addresses, process ids and times
are left out of the comparison where a program prints them. What differed is run again, both ways, and counts if it
differs again.

Known, and left out of the comparison: `LD_PRELOAD` and `FAULTLENS_AGENT` in the program's environment, one more library
in its memory map, another parent process, what the kernel says of handlers when it is asked without the C library, and
`uc_stack` in the context of handlers of signals other than SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT and SIGSYS
(and of those, if set without the C library), which names faultlens' alternate stack where the program has none. A crash
takes as long as its report: what waits for it waits longer.
"""


@dataclass(frozen=True)
class Row:
    name: str
    alone: str
    under: str
    details: str = ""  # what differs, at length
    same: bool = True
    run: bool = True


def main() -> int:
    arguments = _arguments()
    began = time.monotonic()
    tables: dict[str, list[Row]] = {}
    for group, tasks in _chosen(arguments):
        print(f"## {group}", flush=True)
        tables[group] = []
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for row in pool.map(lambda task: task(), tasks):
                tables[group].append(row)
                print(f"{row.name}: {row.alone} / {row.under}{'' if row.same else ' DIFFERS'}", flush=True)
                print(row.details, end="", flush=True)
    if not (arguments.short or arguments.only):
        tables["Programs composed at random"] = [_generated(arguments.generated, arguments.jobs)]
    seconds = time.monotonic() - began
    if not (arguments.short or arguments.only):
        described = machine.describe(sys.executable)
        page = [INTRODUCTION.format(machine=described, seconds=seconds), *map(_section, tables.items())]
        PAGE.write_text("\n".join(page))
    rows = [row for table in tables.values() for row in table]
    differing = [row.name for row in rows if not row.same]
    print(f"{sum(row.run for row in rows)} compared, {len(differing)} differ, {seconds:.0f} s")
    return bool(differing)


def _chosen(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Callable[[], Row]]]]:
    def wanted(row: Program | Suite) -> bool:
        return row.name == arguments.only if arguments.only else not (arguments.short and row.whole)

    for group, programs in PROGRAM_ROWS.items():
        if tasks := [_task(compare_program, each) for each in programs if wanted(each)]:
            yield group, tasks
    for group, suites in SUITE_ROWS.items():
        if tasks := [_task(compare_suite, each) for each in suites if wanted(each)]:
            yield group, tasks


def _task(compare: Callable[[T, Path], Row], each: T) -> Callable[[], Row]:
    def run() -> Row:
        with tempfile.TemporaryDirectory(prefix="transparency-", ignore_cleanup_errors=True) as name:
            Path(name).chmod(0o755)  # for programs of other users
            return compare(each, Path(name))

    return run


# ------------------------------------------------------------------------------------------------- programs


def compare_program(program: Program, folder: Path) -> Row:
    try:
        words = program.build(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return Row(program.name, "not run", _why(error), run=False)
    if not shutil.which(str(words[0])):
        return Row(program.name, "not run", f"no {words[0]} here", run=False)
    for last in (False, True):
        alone, under = (_run(program, words, folder, way) for way in (False, True))
        what = differences(alone, under)
        if not what or last:
            break
    details = f"--- alone: {alone}\n--- under: {under}\n" if what else ""
    return Row(program.name, _status(alone), _status(under), details, not what)


def _run(program: Program, words: Words, folder: Path, under: bool) -> Ending:
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
        here = Path(name)
        here.chmod(0o777)
        found = ending(words, here, under, SECONDS, meanwhile=program.meanwhile)
    return replace(found, output=_stable(found.output, program, here), errors=_stable(found.errors, program, here))


def _stable(data: bytes, program: Program, folder: Path) -> bytes:
    data = data.replace(str(folder).encode(), b"FOLDER")
    return re.sub(program.varies.encode(), b"#", data) if program.varies else data


def _status(found: Ending) -> str:
    if found.status == HUNG:
        return "hung"
    return f"signal {-found.status}" if found.status < 0 else f"exit {found.status}"


def _why(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no {error.filename} here"
    return "may not be done here" if isinstance(error, PermissionError) else "cannot be built here"


# --------------------------------------------------------------------------------------------------- suites

Outcomes = dict[str, str]


def compare_suite(suite: Suite, folder: Path) -> Row:
    alone, under = (_outcomes(suite, folder, way) for way in (False, True))
    odd = _odd(alone, under)
    if odd:  # a test that fails now and then does so alone too
        again, under_again = (_outcomes(suite, folder, way) for way in (False, True))
        odd &= _odd(again, under_again)
    details = "".join(f"{name}: {alone.get(name)} alone, {under.get(name)} under\n" for name in sorted(odd))
    return Row(suite.name, _counts(alone), _counts(under), details, not odd)


def _odd(alone: Outcomes, under: Outcomes) -> set[str]:
    """Tests with another outcome; the reason why one failed may differ."""

    def outcome(outcomes: Outcomes, name: str) -> str:
        return outcomes.get(name, "").partition(":")[0]

    return {name for name in alone.keys() | under.keys() if outcome(alone, name) != outcome(under, name)}


def _outcomes(suite: Suite, folder: Path, under: bool) -> Outcomes:
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
        results = Path(name, "results")
        words = suite.command(results)
        found = ending(words, Path(name), under, SECONDS_OF_A_SUITE, environment=suite.environment)
        text = results.read_text() if results.exists() else ""
    outcomes = _of_xml(text) if text.startswith("<") else _of_lines(text)
    return {**outcomes, "the whole": _status(found)}


def _of_lines(text: str) -> Outcomes:
    outcomes: Outcomes = {}
    for line in text.splitlines():
        name, outcome, why = json.loads(line)
        outcomes[name] = f"{outcome}: {why}" if why else outcome
    return outcomes


def _of_xml(text: str) -> Outcomes:
    return {
        f"{case.get('classname')}.{case.get('name')}": case[0].tag if len(case) else "passed"
        for case in ElementTree.fromstring(text).iter("testcase")
    }


def _counts(outcomes: Outcomes) -> str:
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    failed = sum(outcome.startswith(("failed:", "error", "failure")) for outcome in outcomes.values())
    return f"{passed} passed" + (f", {failed} failed" if failed else "")


def _generated(count: int, jobs: int) -> Row:
    """Pieces of C code, chosen by a seed; a program that does not always end the same way alone is dropped."""
    found = run_round(partial(grammar.program, SEED), range(count), jobs)
    print(found, flush=True)
    dropped, differing = sum(map(len, found.dropped.values())), len(found.differing)
    numbers = ", ".join(str(each.number) for each in found.differing)
    under = f"{differing} differ: {numbers}" if differing else "all end the same way"
    name = f"`benchmarks/generated.py --seed {SEED} --count {count}`"
    return Row(name, f"{found.compared} compared, {dropped} dropped", under, same=not differing)


# ------------------------------------------------------------------------------------------------- the page


def _section(table: tuple[str, list[Row]]) -> str:
    group, rows = table
    lines = [f"## {group}", "", "|  | alone | under faultlens |  |", "| --- | --- | --- | --- |"]
    for row in rows:
        verdict = "" if not row.run else "same" if row.same else "**differs**"
        lines.append(f"| {row.name} | {row.alone} | {row.under} | {verdict} |")
    return "\n".join([*lines, ""])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="without what takes long")
    parser.add_argument("--only", metavar="NAME", help="one program or suite")
    parser.add_argument("--generated", type=int, default=2000, metavar="COUNT", help="programs composed at random")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
