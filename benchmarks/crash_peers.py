"""What other tools tell of the same crashes, and whether `faultlens repro` makes them again."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crash_cases
from crash_cases import Case, Place

GDB_EVERY = 6  # gdb takes a minute for each
C_STACKS = (3, 14)  # faulthandler prints them from this Python on


def compare(cases: list[Case], place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """For every program that dies by a signal: does the output hold the line, does it hold the op, what CPU time."""
    dying = [case for case in cases if case.location and any("signal:" in each for each in case.outcomes)]
    for index, case in enumerate(dying):
        if not place.lacks(case):
            said = _said(case, place, with_gdb=index % GDB_EVERY == 0)
            print(case.id, {peer: (each["line"], each["op"]) for peer, each in said.items()}, flush=True)
            yield case.id, said


def _said(case: Case, place: Place, with_gdb: bool) -> dict[str, Any]:
    said: dict[str, Any] = {}
    with crash_cases.copied(case, place) as (job, env):
        python = place.venvs / case.environments[0] / "bin/python"
        plain = _timed(["bash", "run.sh"], job, {**env, "WRAP": "env PYTHONFAULTHANDLER=1"}, case.seconds, cores=True)
        peer = "faulthandler with C stacks" if _version(python) >= C_STACKS else "faulthandler"
        said[peer] = judge(case, plain[0], 0.0)
        core = next(iter([*job.glob("core"), *job.glob("core.*")]), None)
        if core is None:
            return said
        stacks = [sys.executable, "-m", "pystack", "core", core, "--native-all"]
        said["pystack"] = judge(case, *_timed(stacks, job, env, 120))
        if with_gdb and shutil.which("gdb"):
            command = ["gdb", "-batch", "-ex", "thread apply all bt", str(python.resolve()), str(core)]
            said["gdb"] = judge(case, *_timed(command, job, env, 180))
    return said


def _version(python: Path) -> tuple[int, ...]:
    done = subprocess.run([python, "-V"], capture_output=True, text=True)
    return tuple(map(int, re.findall(r"\d+", done.stdout)[:2]))


def _timed(command: list[Any], cwd: Path, env: dict[str, str], limit: float, cores: bool = False) -> tuple[str, float]:
    """Output and CPU seconds; CPU time tells more than the clock on a machine that does other things."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited)) if cores else None,
        )  # fmt: skip
        text = (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        text = ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return text, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def judge(case: Case, text: str, seconds: float) -> dict[str, Any]:
    """Generous to the peer: the line or the op anywhere in its output counts."""
    assert case.location is not None
    file, lines = case.location["file"], case.location["lines"]
    line = any(re.search(rf'{re.escape(file)}", line {number}\b', text) for number in lines)
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    op = any(re.sub(r"[^a-z0-9]", "", name.lower()) in plain for name in case.op) if case.op else None
    return {"line": line, "op": op, "cpu_seconds": round(seconds, 2)}


def reproduce(cases: list[Case], place: Place, python: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs each crash of an op once more and lets `faultlens repro` try: its exit code says whether the script dies the
    same way."""
    for case in cases:
        if not case.op or not any("signal:" in each for each in case.outcomes) or place.lacks(case):
            continue
        with crash_cases.copied(case, place) as (job, env):
            root = job.parent.parent
            report, out = root / "report.json", root / "repro"
            wrap = f"{python} -m faultlens run --no-save --quiet --json {report} --"
            subprocess.run(["bash", "run.sh"], cwd=job, env={**env, "WRAP": wrap}, capture_output=True)
            command = [python, "-m", "faultlens", "repro", report, "--yes", "--seconds", "15", "--out", out]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            script = out / "reproduce.py"
            lines = len(script.read_text().splitlines()) if script.exists() else None
        tried = {"reproduces": done.returncode == 0, "lines": lines}
        print(case.id, tried, "" if done.returncode == 0 else done.stderr.strip(), flush=True)
        yield case.id, tried
