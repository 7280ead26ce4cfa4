"""How often the verdict is right on crash programs whose truth is known, and what other tools tell of them.

    python benchmarks/accuracy.py measure --set NAME … --cases FOLDER … [--round N] [--only GLOB …] [--logs FOLDER]
    python benchmarks/accuracy.py take RESULTS LOGS --set NAME --cases FOLDER    what crashlab's `score` measured
    python benchmarks/accuracy.py peers --set NAME --cases FOLDER [--only GLOB …]
    python benchmarks/accuracy.py reproduce --set NAME --cases FOLDER [--only GLOB …]
    python benchmarks/accuracy.py page

Each of them writes docs/accuracy.md, the last one does nothing else. FOLDER holds ID/{case.json, run.sh, …} as crashlab
does (its README.md says what case.json holds). Every program runs alone first (unless baseline.json beside FOLDER knows
how it ends), then under the tool. An id such as r2_NAME says which round of its set it belongs to. What was measured is
kept in benchmarks/accuracy/, and the page is made from these files alone:

    SET.json, SET_ROUND.json   the results: `cases` has the truth, what was said, and the grades of each; a `note` that
                               was written into one by hand is on the page
    SET_ROUND_COMMIT.json      the same round after mending (--again): first contact is never written over
    NAME.usefulness.json       {ID: {"grade": 0, 1 or 2, "why": a sentence}}, by a grader who did not write it
    NAME.peers.json, NAME.reproduced.json, NAME.verdicts.json (tools/fit_confidence.py --keep)

A run that was cut short goes on where it ended, as long as the tool is the same commit."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import accuracy_page
import crash_cases
import crash_grades
import crash_peers
from crash_cases import Case, Place, Run

HERE = Path(__file__).parent
KEPT = HERE / "accuracy"
COMMAND = "{python} -m faultlens run --no-save --json {{report}} --timeout {{timeout}} --"
PATIENCE = 2.0  # a program may take longer under a tool
LACKING = "this machine lacks what it needs"
TRIES = 3  # some end as their truth says only now and then


def main() -> None:
    arguments = parse()
    KEPT.mkdir(exist_ok=True)
    for name, folder in zip(arguments.set, arguments.cases, strict=True):
        place = Place.of(folder, arguments.lab, arguments.venvs, arguments.logs)
        for number, cases in by_round(crash_cases.load(folder, arguments.only), arguments.round).items():
            VERBS[arguments.verb](arguments, Round(name, number, folder), cases, place)
    accuracy_page.write(KEPT)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(set=[], cases=[])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("page")
    for name in VERBS:
        verb = verbs.add_parser(name)
        if name == "take":
            verb.add_argument("results", type=Path)
            verb.add_argument("logs", type=Path)
            verb.add_argument("--commit", required=True, help="of the tool that was measured")
        else:
            verb.add_argument("--logs", type=Path, help="keep the report and the output of every run there")
        verb.add_argument("--set", nargs="+", required=True, help="what the collection is called")
        verb.add_argument("--cases", nargs="+", type=absolute, required=True, help="its ID/{case.json, run.sh}")
        verb.add_argument("--only", nargs="+", default=[], metavar="GLOB", help="only these ids")
        verb.add_argument("--round", type=int, help="which contact with programs of this set it is")
        verb.add_argument("--lab", type=Path, help="crashlab, where FOLDER has no `cgrun` or `venvs` beside it")
        verb.add_argument("--venvs", type=Path, help="virtual environments (or CRASHLAB_VENVS)")
        verb.add_argument("--tool-python", default=sys.executable, help="the Python that has faultlens")
        verb.add_argument("--again", action="store_true", help="measure what was measured before")
    return parser.parse_args()


def absolute(path: str) -> Path:
    return Path(path).resolve()


class Round(NamedTuple):
    """One set of programs, or those of it that were met at one time."""

    set: str
    number: int | None
    folder: Path

    @property
    def name(self) -> str:
        return self.set if self.number is None else f"{self.set}_{self.number}"


def by_round(cases: list[Case], number: int | None) -> dict[int | None, list[Case]]:
    found: dict[int | None, list[Case]] = {}
    for case in cases:
        told = re.match(r"r(\d+)_", case.id)
        found.setdefault(int(told[1]) if number is None and told else number, []).append(case)
    return found


def peers(arguments: argparse.Namespace, of: Round, cases: list[Case], place: Place) -> None:  # noqa: ARG001
    add(KEPT / f"{of.name}.peers.json", crash_peers.compare(cases, place))


def reproduce(arguments: argparse.Namespace, of: Round, cases: list[Case], place: Place) -> None:
    add(KEPT / f"{of.name}.reproduced.json", crash_peers.reproduce(cases, place, arguments.tool_python))


def add(path: Path, found: Iterable[tuple[str, Any]]) -> None:
    """One by one, so that what was measured is kept when it is cut short."""
    known = json.loads(path.read_text()) if path.exists() else {}
    for name, said in found:
        known[name] = said
        path.write_text(json.dumps(known, indent=1) + "\n")


# -------------------------------------------------------------------------------------------- measuring


def measure(arguments: argparse.Namespace, of: Round, cases: list[Case], place: Place) -> None:
    path, results = begin(of, commit_of(arguments.tool_python), arguments.again)
    if path is None:
        print(f"{of.name} was measured at {results['commit']} and is not measured again (--again does)")
        return
    tool = COMMAND.format(python=arguments.tool_python)
    endings = known_endings(of.folder)
    for number, case in enumerate(cases, 1):
        if case.id in results["cases"]:
            continue
        alone, problem = on_its_own(case, place, endings.get(case.id))
        if problem:
            results["left_out"][case.id] = problem
            print(f"{number:3d}/{len(cases)} {case.id:44s} left out: {problem}", flush=True)
        else:
            results["left_out"].pop(case.id, None)
            told = crash_grades.graded(case, crash_cases.run(case, place, tool, PATIENCE), alone)
            results["cases"][case.id] = told
            print(f"{number:3d}/{len(cases)} {line_about(case.id, told)}", flush=True)
        write(path, results)
    print(accuracy_page.summary(results))
    print(f"written: {path}")


def begin(of: Round, commit: str, again: bool) -> tuple[Path | None, dict[str, Any]]:
    """The file for these results with what it holds already; no file where this is not to be measured."""
    path = KEPT / f"{of.name}.json"
    first: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    if first and first["commit"] == commit and (of.number is not None or not again):
        return path, first  # cut short
    if first and not again:
        return None, first
    if first and of.number is not None:
        path = KEPT / f"{of.name}_{commit}.json"
        if path.exists():
            return path, json.loads(path.read_text())
    return path, {
        "schema": 1,
        "set": of.set,
        "round": of.number,
        "first_contact": of.number is not None and not first,
        "commit": commit,
        "measured": f"{datetime.date.today()}",
        "left_out": {},
        "cases": {},
    }


def write(path: Path, results: dict[str, Any]) -> None:
    """A line for each case, which shows in a diff what changed."""
    head = json.dumps({**results, "cases": {}}, indent=1).removesuffix("{}\n}")
    lines = [f"  {json.dumps(name)}: {json.dumps(told)}" for name, told in results["cases"].items()]
    path.write_text(head + "{\n" + ",\n".join(lines) + "\n }\n}\n")


def commit_of(python: str) -> str:
    """What the tool was built from; "+" where its files differ from that."""
    where = "import faultlens, pathlib; print(pathlib.Path(faultlens.__file__).parent)"
    env = crash_cases.passed_on()
    done = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True, cwd="/", env=env)
    folder = done.stdout.strip()

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True).stdout.strip()

    changed = "+" if git("status", "--porcelain", "--untracked-files=no", "--", folder) else ""
    return (git("rev-parse", "--short=7", "HEAD") or "unknown") + changed


def known_endings(cases: Path) -> dict[str, str]:
    """How programs end on their own, as crashlab's `score --baseline` found."""
    path = cases.resolve().parent / "baseline.json"
    found = json.loads(path.read_text())["cases"] if path.exists() else {}
    return {name: f"{each['status']['kind']} {each['status']['value']}".strip() for name, each in found.items()}


def on_its_own(case: Case, place: Place, known: str | None) -> tuple[str, str]:
    """How it ends without a tool, and why it cannot be graded: a truth that does not hold here grades nothing."""
    if lacking := place.lacks(case):
        return "", f"there is no {', '.join(lacking)}"
    status = known or ""
    for _ in range(TRIES):
        if case.ends_so(status):
            return status, ""
        status = crash_cases.run(case, place).status
        if status == crash_cases.LACKING:
            return status, LACKING
    return (status, "") if case.ends_so(status) else (status, f"without a tool it ends by {status} here")


def line_about(name: str, told: dict[str, Any]) -> str:
    marks = "".join({True: "✓", False: "✗", None: "·"}[grade] for grade in told["grades"].values())
    said = told["said"]
    sure = "" if said["confidence"] is None else f" {said['confidence']:.2f}"
    place = f" at {said['location']}" if said["location"] else ""
    op = f" in {said['op']}" if said["op"] else ""
    wrong = "" if told["grades"]["cause"] else f"   (truth: {told['truth']['causes'][0]})"
    return f"{name:44s} {marks} {told['seconds']:6.1f}s {said['cause'] or told.get('problem')}{sure}{op}{place}{wrong}"


def take(arguments: argparse.Namespace, of: Round, cases: list[Case], place: Place) -> None:  # noqa: ARG001
    """Results that crashlab's `score` measured, graded here from the reports that it kept."""
    path, results = begin(of, arguments.commit, arguments.again)
    if path is None:
        raise SystemExit(f"{of.name} was measured at {results['commit']} (--again replaces it)")
    measured = {each["id"]: each for each in json.loads(arguments.results.read_text())["cases"]}
    for case in cases:
        if case.id not in measured:
            results["left_out"][case.id] = LACKING
            continue
        known = measured[case.id]
        report = crash_cases.read_report(arguments.logs / case.id / "report.json")
        told = crash_grades.graded(case, Run(known["status"], known["seconds"], *report), None)
        told["grades"]["status"] = known["grades"]["status"]
        results["cases"][case.id] = told
        for name, grade in known["grades"].items():
            if told["grades"][name] != grade:
                print(f"{case.id}: {name} is {told['grades'][name]} here and {grade} by `score`")
    write(path, results)
    print(accuracy_page.summary(results))


VERBS: dict[str, Callable[[argparse.Namespace, Round, list[Case], Place], None]] = {
    "measure": measure,
    "take": take,
    "peers": peers,
    "reproduce": reproduce,
}

if __name__ == "__main__":
    main()
