"""Which leaks are told, and are healthy programs left alone? Whole programs that the rule was not made with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from measure import FAULTLENS, PROGRAMS, Bench, Table, clean_environment

SECONDS, QUICK_SECONDS, QUICK = 60, 25, 8  # with --quick every eighth program
FOLDER = PROGRAMS / "leaks"
HEALTHY = "healthy"
ELSE = "**something else**"
# What must be told of: kinds of growth or of holder, and a word that names the owner, where there is one to be seen.
EXPECTED: dict[str, tuple[tuple[str, ...], str]] = {
    "by_step": (("python objects",), "seen"),
    "cycles": (("python objects", "native heap"), ""),
    "files": (("open files",), ""),
    "iterators": (("python objects", "native heap"), ""),
    "malloc": (("native heap",), ""),
    "memoized": (("python objects", "native heap"), ""),
    "models": (("graph traces", "tf variables"), ""),
    "predictions": (("python objects",), "predictions"),
    "retracing": (("graph traces",), "train"),
    "shared": (("shared memory", "open files"), ""),
    "sockets": (("open files",), "socket"),
    "tapes": (("tensors", "python objects"), ""),
    "tensors": (("tensors",), "features"),
    "threads": (("threads",), ""),
    "variables": (("tf variables",), ""),
}
HEADER = ("program", "steps known", "told", "")
TEXT = """\
Programs of benchmarks/programs/leaks, {seconds} s each below `faultlens run`, without a limit of memory of their own. A
leak is right if the kind of what grows, and the owner where Python can see one, is among what is told. Of a healthy
program nothing may be told, neither while it runs nor in its report. {leaks} leaks are told rightly, of {wrong}
something else is told, {silent} are not told at all; {alarms}."""


def run(bench: Bench) -> Table:
    seconds = QUICK_SECONDS if bench.quick else SECONDS
    programs = sorted(FOLDER.glob("*_*.py"))[:: QUICK if bench.quick else 1]
    table = Table("Leaks", "", HEADER)
    verdicts = []
    for program in programs:
        report, said = _watched(bench, program, seconds)
        verdict = _verdict(program.stem, report, said)
        verdicts.append((program.stem.startswith(HEALTHY), verdict))
        known = any(sample.get("steps") for sample in report["crash"].get("timeline", ()))
        told = "; ".join(said) or "nothing"
        table.rows.append([f"`{program.stem}`", "yes" if known else "no", told, verdict])
        table.data[program.stem] = {"told": said, "verdict": verdict, "steps known": known}
    leaks = [verdict for healthy, verdict in verdicts if not healthy]
    alarms = [verdict for healthy, verdict in verdicts if healthy and verdict != "right"]
    count = len(verdicts) - len(leaks)
    table.text = TEXT.format(
        seconds=seconds,
        leaks=f"{leaks.count('right')} of {len(leaks)}",
        wrong=leaks.count(ELSE),
        silent=leaks.count("not told"),
        alarms=f"{len(alarms)} of {count} healthy programs raise an alarm",
    )
    return table


def _watched(bench: Bench, program: Path, seconds: int) -> tuple[dict[str, Any], list[str]]:
    """The report, and what faultlens said."""
    path = bench.folder / f"{program.stem}.json"
    command = [*FAULTLENS, "run", "--no-save", "--json", path, "--", bench.python, program, str(seconds)]
    done = subprocess.run(
        [str(word) for word in command], env=clean_environment(), capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} ended with {done.returncode}: {done.stderr[-300:]}")
    said = [line.removeprefix("faultlens: ") for line in done.stderr.splitlines() if line.startswith("faultlens: ")]
    return json.loads(path.read_text()), said


def _verdict(program: str, report: dict[str, Any], said: list[str]) -> str:
    kind, _, name = program.partition("_")
    growth = report["crash"].get("growth", ())
    if kind == HEALTHY:
        return "**alarm**" if said or growth else "right"
    if not growth:
        return "not told"
    kinds, owner = EXPECTED[name]
    holders = [(holder["kind"], holder["text"]) for each in growth for holder in each.get("holders", ())]
    return "right" if any(kind in kinds and owner in text for kind, text in holders) else ELSE
