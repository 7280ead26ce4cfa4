"""No native verdict where nothing native happened: healthy scripts, plain exceptions, test suites of public packages.

    python benchmarks/healthy.py PYTHON                     # all there are; writes docs/healthy.md
    python benchmarks/healthy.py PYTHON --count 150         # so many, evenly spread
    python benchmarks/healthy.py PYTHON --only 'NumPy: *'   # those, with what was said; writes nothing

PYTHON is that of an environment with NumPy, h5py, TensorFlow and pytest, and whatever else ships its tests. Each
program is run under `faultlens run --json`; it counts as wrong if the first diagnosis is a native cause though the
process ended well, with an exit status or with an exception. Every tenth is run alone as well, and those that do not
end in time: the exit status must be the same.
--results FILE keeps each run in a line; runs that stand there already are not done again."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import machine
from endings import HUNG, in_one_state
from healthy_programs import LEFT_OUT, Healthy, all_of, spread

from faultlens.diagnosis.causes import catalogue

PAGE = Path(__file__).parent.parent / "docs" / "healthy.md"
FAULTLENS = [sys.executable, "-m", "faultlens", "run", "--quiet", "--no-save", "--json"]
COMPARED_EVERY = 10
# How a program ended, or that nothing speaks for anything: not what is wrong below Python.
PLAIN_FAMILIES = {"ending", "harmless", "undecided"}
ENDED_BY_ITSELF = {"ok", "exit", "exception"}

INTRODUCTION = """\
# Healthy programs

Made by `python benchmarks/healthy.py PYTHON`, on {machine}; {minutes:.0f} minutes.

Scripts that end well, with an exit status or with a plain exception, and test suites of public packages, one file each,
under `faultlens run`. A run counts as wrong if the first diagnosis is a native cause (any but how the program ended)
though the process ended by itself. Every tenth was run alone as well, and its exit status compared.

**{runs:,} runs, {wrong} wrong verdicts; {compared} compared with a run alone, {differing} ended differently.**
"""


@dataclass(frozen=True)
class Seen:
    group: str
    name: str
    ended: str  # ok, exit, exception, signal, … ; "not ended": its time was up; "no report"
    status: int = HUNG
    alone: int | None = None  # the status of the run alone; None: not compared
    cause: str = ""  # of the first diagnosis
    confidence: float = 0.0
    is_native: bool = False
    seconds: float = 0.0

    @property
    def is_wrong(self) -> bool:
        return (self.is_native and self.ended in ENDED_BY_ITSELF) or self.ended == "no report"

    @property
    def differs(self) -> bool:
        return self.alone is not None and self.alone != self.status


# -------------------------------------------------------------------------------------------------------- runs


def look(program: Healthy, compare: bool) -> Seen:
    began = time.monotonic()
    words = ["env", "-u", "PYTHONPATH", *program.words]  # which may be there for faultlens
    families = {cause.slug: cause.family for cause in catalogue()}
    with tempfile.TemporaryDirectory(prefix="healthy-", ignore_cleanup_errors=True) as name:
        report = Path(name, "report.json")
        status = _status([*FAULTLENS, str(report), "--", *words], Path(name, "run"), program.seconds)
        compare = compare or status == HUNG
        alone = _status(words, Path(name, "alone"), program.seconds) if compare else None
        if compare and alone != status:  # it may end now so, now so
            alone = _status(words, Path(name, "again"), program.seconds)
        if status == HUNG:
            return Seen(program.group, program.name, "not ended", status, alone, seconds=time.monotonic() - began)
        try:
            content = json.loads(report.read_text())
        except (OSError, ValueError):
            return Seen(program.group, program.name, "no report", status, alone, seconds=time.monotonic() - began)
    first = next(iter(content["diagnoses"]), {})
    cause = first.get("cause", "")
    is_native = bool(cause) and families.get(cause) not in PLAIN_FAMILIES
    if program.allowed and re.fullmatch(program.allowed, cause):
        is_native = False
    sure, took = first.get("confidence", 0.0), time.monotonic() - began
    return Seen(program.group, program.name, content["outcome"]["kind"], status, alone, cause, sure, is_native, took)


def _status(words: Sequence[str], folder: Path, seconds: float) -> int:
    """In a session of its own: what it leaves behind is ended."""
    folder.mkdir()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "FAULTLENS"))}
    variables |= {"TF_CPP_MIN_LOG_LEVEL": "3", "FAULTLENS_HOME": str(folder / "home")}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True, preexec_fn=in_one_state,
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return HUNG
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def looked(programs: Sequence[Healthy], jobs: int, results: Path | None) -> Iterator[Seen]:
    known: dict[tuple[str, str], Seen] = {}
    if results and results.exists():
        for line in results.read_text().splitlines():
            seen = Seen(**json.loads(line))
            known[seen.group, seen.name] = seen
    missing = [(index, each) for index, each in enumerate(programs) if (each.group, each.name) not in known]
    yield from (known[each.group, each.name] for each in programs if (each.group, each.name) in known)
    with ThreadPoolExecutor(jobs) as pool:
        for seen in pool.map(lambda pair: look(pair[1], pair[0] % COMPARED_EVERY == 0), missing):
            if results:
                with results.open("a") as file:
                    file.write(json.dumps(asdict(seen)) + "\n")
            yield seen


# -------------------------------------------------------------------------------------------------------- page


def page(seen: Sequence[Seen], python: str) -> str:
    done = [each for each in seen if each.ended != "not ended"]
    numbers = {
        "runs": len(done),
        "wrong": sum(each.is_wrong for each in done),
        "compared": sum(each.alone is not None for each in done),
        "differing": sum(each.differs for each in seen),
        "minutes": sum(each.seconds for each in seen) / 60,
    }
    parts = [INTRODUCTION.format(machine=machine.describe(python), **numbers), _table(done), LEFT_OUT]
    lists = {
        "Wrong": [
            f"{each.name}: {each.cause} {each.confidence:.2f}, ended by {each.ended}" for each in done if each.is_wrong
        ],
        "Ended differently": [f"{each.name}: {each.status}, alone {each.alone}" for each in seen if each.differs],
        "Not ended in time, nor alone, and not counted": [
            each.name for each in seen if each.ended == "not ended" and not each.differs
        ],
        "Ended by a signal or at a time limit": [
            f"{each.name}: {each.ended}, {each.cause}" for each in done if each.ended not in ENDED_BY_ITSELF
        ],
    }
    for title, lines in lists.items():
        if lines:
            parts.append("\n".join([f"## {title}", "", *(f"- {line}" for line in lines), ""]))
    return "\n".join(parts)


def _table(done: Sequence[Seen]) -> str:
    lines = ["|  | runs | ended well | exit status | exception | other | wrong |", "| --- |" + " --- |" * 6]
    for group in dict.fromkeys(each.group for each in done):
        members = [each for each in done if each.group == group]
        ended = Counter(each.ended for each in members)
        other = len(members) - sum(ended[kind] for kind in ENDED_BY_ITSELF)
        cells = [
            len(members),
            ended["ok"],
            ended["exit"],
            ended["exception"],
            other,
            sum(each.is_wrong for each in members),
        ]
        lines.append(f"| {group} | {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""])


def main() -> int:
    arguments = _arguments()
    programs = all_of(arguments.python.absolute())
    if arguments.only:
        programs = [each for each in programs if fnmatch.fnmatch(each.name, arguments.only)]
    chosen = spread(programs, arguments.count or len(programs))
    print(f"{len(chosen)} of {len(programs)}", flush=True)
    seen = []
    for each in looked(chosen, arguments.jobs, arguments.results):
        seen.append(each)
        mark = " WRONG" if each.is_wrong else " DIFFERS" if each.differs else ""
        if mark or arguments.only or len(seen) % 25 == 0:
            words = f"{each.ended} {each.status} {each.cause} {each.confidence:.2f} {each.seconds:.0f} s"
            print(f"{len(seen)} {each.group}: {each.name}: {words}{mark}", flush=True)
    if not arguments.only:
        PAGE.write_text(page(seen, str(arguments.python)))
    wrong = sum(each.is_wrong or each.differs for each in seen)
    print(f"{len(seen)} runs, {wrong} wrong or different, {sum(each.seconds for each in seen):.0f} s")
    return bool(wrong)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("--count", type=int)
    parser.add_argument("--only", metavar="PATTERN")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
