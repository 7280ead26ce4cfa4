"""Is it the same verdict live, by ptrace, from a core file and from a stored report, and the same in every run?

    python benchmarks/same_verdict.py CRASHLAB              # each program by each method
    python benchmarks/same_verdict.py CRASHLAB --runs 5     # each program five times, live
    python benchmarks/same_verdict.py CRASHLAB --only 'op_*' --only lrn_grad_rank

CRASHLAB is a collection of crash programs: cases/ID/{case.json, run.sh, …} (benchmarks/accuracy.py). Those whose truth
names a signal are run, one at a time. What was found is kept in benchmarks/same_verdict.json, so that programs can be
run again one by one; docs/same_verdict.md is written from it. The core file is made by the kernel, in a run without
faultlens: its pattern (/proc/sys/kernel/core_pattern) must lead to the working directory."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine

DOCUMENT = Path(__file__).parent.parent / "docs" / "same_verdict.md"
FOUND = Path(__file__).parent / "same_verdict.json"
FAULTLENS = [sys.executable, "-m", "faultlens"]
METHODS = {"agent": "live", "ptrace": "ptrace", "core": "core", "stored": "stored"}
LIVE = "live"
NOTHING = "no report"
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

INTRODUCTION = """\
# The same verdict, however it is seen

Made by `python benchmarks/same_verdict.py CRASHLAB` and `… --runs {runs}`, on {machine}.
"""

BY_METHOD = """\
## By each method

*live*: the agent inside the program. *ptrace*: no agent. *core*: a run without faultlens, and `faultlens explain` of
the core file that the kernel wrote. *stored*: the report of the live run, judged again by `faultlens show`. The program
ran three times: where it does not end alike in each run, that shows here as well. A core file holds no output but what
a failed check logged, no limits, no counters and no C++ exceptions that were thrown before: a cause that needs them
cannot be seen in it, and the report says so. The line that wrote a node of a graph is known to the agent alone.

The first cause, with its confidence; `=` is the same as live. Lines and ops are compared as well.
"""

BY_RUN = """\
## In every run

{runs} runs of each, live.
"""

Verdict = dict[str, Any]


# --------------------------------------------------------------------------------------------------- verdicts


def copied(lab: Path, case: dict[str, Any], scratch: Path) -> tuple[Path, dict[str, str]]:
    """A copy of a case to run, and the environment to run it in."""
    job = scratch / "jobs" / "job"
    shutil.copytree(lab / "cases" / case["id"], job, ignore=shutil.ignore_patterns("case.json"))
    shutil.copy(lab / "cgrun", scratch / "cgrun")
    venvs = venvs_of(lab)
    return job, {**os.environ, "VENVS": str(venvs), "VENV": str(venvs / case["environment"]), "TMPDIR": str(scratch)}


def venvs_of(lab: Path) -> Path:
    return Path(os.environ.get("CRASHLAB_VENVS", lab / "venvs"))


def verdict_in(report: Path) -> Verdict:
    """What the first diagnosis of a report says."""
    try:
        content = json.loads(report.read_text())
    except (OSError, ValueError):
        return {"cause": NOTHING}
    first: dict[str, Any] = next(iter(content.get("diagnoses", [])), {})
    place = first.get("location") or {}
    outcome = content["outcome"]
    return {
        "outcome": outcome.get("signal") or outcome["kind"],
        "cause": first.get("cause", "none"),
        "confidence": round(first.get("confidence", 0.0), 2),
        "line": f"{Path(place['file']).name}:{place['line']}" if place.get("line") else "",
        "op": first.get("op") or "",
        "gaps": content["crash"].get("gaps", []),
    }


def live(lab: Path, case: dict[str, Any], scratch: Path, capture: str) -> Path:
    job, variables = copied(lab, case, scratch)
    report = scratch / "report.json"
    words = [*FAULTLENS, "run", "--quiet", "--no-save", "--capture", capture]
    words += ["--timeout", str(case["timeout_s"]), "--json", str(report), "--"]
    _run(["bash", "run.sh"], job, {**variables, "WRAP": " ".join(words)}, 3 * case["timeout_s"])
    return report


def by_each_method(lab: Path, case: dict[str, Any]) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="same-") as name:
        for capture in ("agent", "ptrace"):
            scratch = Path(name, capture)
            scratch.mkdir()
            report = live(lab, case, scratch, capture)
            found[METHODS[capture]] = verdict_in(report)
            if capture == "agent":
                again = scratch / "again.json"
                _run([*FAULTLENS, "show", str(report), "--json", str(again)], scratch, dict(os.environ), 120)
                found[METHODS["stored"]] = verdict_in(again)
        found[METHODS["core"]] = verdict_in(_explained(lab, case, Path(name, "core")))
    return found


def _explained(lab: Path, case: dict[str, Any], scratch: Path) -> Path:
    """The report on the core file of a run without faultlens."""
    scratch.mkdir()
    job, variables = copied(lab, case, scratch)
    _run(["bash", "run.sh"], job, {**variables, "WRAP": ""}, 3 * case["timeout_s"], cores=True)
    report = scratch / "report.json"
    cores = sorted([*job.glob("core"), *job.glob("core.*")], key=lambda path: path.stat().st_mtime)
    if cores:
        words = ["explain", str(cores[-1]), "--no-save", "--source-root", str(job), "--json", str(report)]
        _run([*FAULTLENS, *words], scratch, variables, 300)
    return report


def _run(words: list[str], folder: Path, variables: dict[str, str], seconds: float, cores: bool = False) -> None:
    limit = UNLIMITED if cores else (0, 0)
    with tempfile.TemporaryFile() as said:
        try:
            subprocess.run(
                words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=seconds,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"  not ended after {seconds:.0f} s: {' '.join(words)[:100]}", flush=True)


# -------------------------------------------------------------------------------------------------------- page


def differences(verdict: Verdict, other: Verdict) -> list[str]:
    """In what it differs from the other one."""
    keys = ("outcome", "cause", "line", "op")
    return [key for key in keys if verdict.get(key, "") != other.get(key, "")]


def page(found: dict[str, Any], python: str) -> str:
    runs = max((len(each) for each in found.get("runs", {}).values()), default=5)
    parts = [INTRODUCTION.format(machine=machine.describe(python), runs=runs)]
    if methods := found.get("methods"):
        parts += [BY_METHOD, _method_table(methods)]
    if by_run := found.get("runs"):
        parts += [BY_RUN.format(runs=runs), _run_table(by_run)]
    return "\n".join(parts)


def _method_table(methods: dict[str, dict[str, Verdict]]) -> str:
    others = [name for name in METHODS.values() if name != LIVE]
    lines = [f"| program | {LIVE} | {' | '.join(others)} |", f"| --- | --- |{' --- |' * len(others)}"]
    same: Counter[str] = Counter()
    for name, verdicts in sorted(methods.items()):
        base = verdicts[LIVE]
        cells = []
        for other in others:
            same[other] += verdicts[other]["cause"] == base["cause"]
            cells.append(_cell(verdicts[other], base))
        lines.append(f"| {name} | {_words(base)} | {' | '.join(cells)} |")
    counts = ", ".join(f"{other} {same[other]}" for other in others)
    return "\n".join([f"{len(methods)} programs; the same cause as live: {counts}.", "", *lines, ""])


def _words(verdict: Verdict) -> str:
    return f"{verdict['cause']} {verdict.get('confidence', '')}".strip()


def _cell(verdict: Verdict, base: Verdict) -> str:
    what = differences(verdict, base)
    if not what:
        return f"= {verdict.get('confidence', '')}"
    words = [f"**{_words(verdict)}**"] if "cause" in what else [f"= {verdict.get('confidence', '')}"]
    return "; ".join([*words, *(f"{key} {verdict.get(key) or 'none'}" for key in what if key != "cause")])


def _run_table(by_run: dict[str, list[Verdict]]) -> str:
    lines = ["| program | cause | confidence | line | op |", "| --- | --- | --- | --- | --- |"]
    alike = 0
    for name, verdicts in sorted(by_run.items()):
        alike += len({verdict["cause"] for verdict in verdicts}) == 1
        confidences = [verdict.get("confidence", 0.0) for verdict in verdicts]
        low, high = min(confidences), max(confidences)
        sure = f"{low}" if low == high else f"{low} to {high}"
        cause, line, op = (_counted(verdicts, key) for key in ("cause", "line", "op"))
        lines.append(f"| {name} | {cause} | {sure} | {line} | {op} |")
    return "\n".join([f"{len(by_run)} programs; the same cause in all runs: {alike}.", "", *lines, ""])


def _counted(verdicts: list[Verdict], key: str) -> str:
    counts = Counter(verdict.get(key, "") or "none" for verdict in verdicts)
    if len(counts) == 1:
        return next(iter(counts))
    return "**" + ", ".join(f"{value} ({count})" for value, count in counts.most_common()) + "**"


# -------------------------------------------------------------------------------------------------------- main


def chosen(lab: Path, patterns: list[str]) -> Iterator[dict[str, Any]]:
    """The programs that die by a signal, and can be run here."""
    for path in sorted(lab.glob("cases/*/case.json")):
        case: dict[str, Any] = json.loads(path.read_text())
        folders = [case["environment"], *case.get("also", [])]
        if "signal:" not in str(case["outcome"]) or not all((venvs_of(lab) / each).exists() for each in folders):
            continue
        if not patterns or any(fnmatch.fnmatch(case["id"], pattern) for pattern in patterns):
            yield case


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("crashlab", type=Path)
    parser.add_argument("--runs", type=int, help="each program so often, live, instead of once by each method")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    arguments = parser.parse_args()
    lab = arguments.crashlab.resolve()
    found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    kind = "runs" if arguments.runs else "methods"
    for case in chosen(lab, arguments.only):
        result = _again(lab, case, arguments.runs) if arguments.runs else by_each_method(lab, case)
        if all(each["cause"] == NOTHING for each in (result if isinstance(result, list) else result.values())):
            print(f"{case['id']}: cannot be run here", flush=True)  # it needs something that this machine has not
            continue
        found.setdefault(kind, {})[case["id"]] = result
        FOUND.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        shown = result if isinstance(result, list) else result.values()
        print(
            case["id"],
            *(f"{_words(each)} {each.get('line')} {each.get('op')}" for each in shown),
            sep="\n  ",
            flush=True,
        )
    python = next(str(path) for path in sorted(venvs_of(lab).glob("*/bin/python")))
    DOCUMENT.write_text(page(found, python))
    print(f"written: {DOCUMENT}")
    return 0


def _again(lab: Path, case: dict[str, Any], runs: int) -> list[Verdict]:
    verdicts = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="same-") as name:
            verdicts.append(verdict_in(live(lab, case, Path(name), "agent")))
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
