"""Crash programs with their truth (cases/ID/{case.json, run.sh, …}), and how one is run: a copy of it, in a folder
whose name says nothing, without the truth, in an environment without the caller's settings."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

QUIET = ("ok", "silent")  # endings of which nothing need be said
GRACE = 15  # seconds from the polite to the final signal
LACKING = "exit 99"  # how run.sh says that the machine lacks something
NOT_PASSED_ON = ("PYTHON", "TF_", "LD_", "KMP_", "OMP_", "MALLOC_", "XLA_", "WRAP", "VENV")


@dataclass(frozen=True)
class Case:
    """One program and its truth."""

    folder: Path
    truth: dict[str, Any]

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def outcomes(self) -> list[str]:
        outcome = self.truth["outcome"]
        return outcome if isinstance(outcome, list) else [outcome]

    @property
    def causes(self) -> list[str]:
        return list(self.truth["causes"])

    @property
    def op(self) -> list[str]:
        return list(self.truth.get("op") or [])

    @property
    def location(self) -> dict[str, Any] | None:
        return self.truth.get("location")

    @property
    def quiet(self) -> bool:
        return all(outcome in QUIET for outcome in self.outcomes)

    @property
    def environments(self) -> list[str]:
        return [self.truth.get("environment", "tf221"), *self.truth.get("also", [])]

    @property
    def seconds(self) -> float:
        return float(self.truth.get("timeout_s", 120))

    def ends_so(self, status: str) -> bool:
        """Is this one of the endings of the truth?"""
        endings = {"ok": "exit 0", "silent": "exit 0", "exception": "exit 1", "hang": "timeout"}
        return status in [endings.get(outcome, outcome.replace(":", " ")) for outcome in self.outcomes]


def load(cases: Path, only: Sequence[str] = ()) -> list[Case]:
    folders = sorted(path.parent for path in cases.glob("*/case.json"))
    chosen = [folder for folder in folders if not only or any(fnmatch(folder.name, pattern) for pattern in only)]
    return [Case(folder, json.loads((folder / "case.json").read_text())) for folder in chosen]


@dataclass(frozen=True)
class Place:
    """Where cases are run: the environments, the program `cgrun` that some need, what is kept of each run."""

    venvs: Path
    cgrun: Path | None = None
    logs: Path | None = None

    @staticmethod
    def of(cases: Path, lab: Path | None, venvs: Path | None, logs: Path | None = None) -> Place:
        homes = [cases.parent, *([lab] if lab else [])]
        named = os.environ.get("CRASHLAB_VENVS")
        folder = venvs or (Path(named) if named else next((h / "venvs" for h in homes if (h / "venvs").exists()), None))
        if folder is None:
            raise SystemExit("no folder of virtual environments: name it by --venvs or CRASHLAB_VENVS")
        cgrun = next((home / "cgrun" for home in homes if (home / "cgrun").exists()), None)
        return Place(folder.resolve(), cgrun, logs)

    def lacks(self, case: Case) -> list[str]:
        return [name for name in case.environments if not (self.venvs / name).exists()]


@dataclass(frozen=True)
class Run:
    status: str  # "signal SIGSEGV", "exit 1", "timeout"
    seconds: float
    report: dict[str, Any] | None = None
    problem: str = ""  # why there is no report


def passed_on() -> dict[str, str]:
    """The environment without settings that would change how a program ends, or which tool runs."""
    return {key: value for key, value in os.environ.items() if not key.startswith(NOT_PASSED_ON)}


@contextlib.contextmanager
def copied(case: Case, place: Place) -> Iterator[tuple[Path, dict[str, str]]]:
    """A copy of a case to run, and the environment to run it in; the folder two above it is the run's own."""
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        job, scratch = root / "jobs" / secrets.token_hex(4), root / "tmp"
        shutil.copytree(case.folder, job, symlinks=True, ignore=shutil.ignore_patterns("case.json"))
        scratch.mkdir()
        if place.cgrun:
            shutil.copy(place.cgrun, root / "cgrun")
        venv = place.venvs / case.environments[0]
        yield job, {**passed_on(), "VENVS": str(place.venvs), "VENV": str(venv), "TMPDIR": str(scratch)}


def run(case: Case, place: Place, tool: str = "", patience: float = 1.0) -> Run:
    """`tool` is put in front of the program's command; {report} and {timeout} in it are filled in."""
    with copied(case, place) as (job, env):
        root = job.parent.parent
        report = root / "report.json"
        wrap = tool.replace("{report}", str(report)).replace("{timeout}", f"{case.seconds:g}")
        began = time.monotonic()
        with open(root / "stdout", "wb") as out, open(root / "stderr", "wb") as err:
            process = subprocess.Popen(
                ["bash", "run.sh"], cwd=job, env={**env, "WRAP": wrap}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
            status = _wait(process, case.seconds * patience)
        seconds = round(time.monotonic() - began, 1)
        _keep_what_was_built(case, job)
        if tool and place.logs:
            _keep(root, place.logs / case.id)
        return Run(status, seconds, *(read_report(report) if tool else (None, "")))


def _wait(process: subprocess.Popen[bytes], limit: float) -> str:
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        _end(process)
        return "timeout"
    if code >= 0:
        return f"exit {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"signal {names.get(-code, -code)}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the first process, then ends all that it started, in whatever session."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    below = _below(process.pid)
    for end in (lambda: os.killpg(process.pid, signal.SIGKILL), *(lambda pid=pid: os.kill(pid, 9) for pid in below)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end()
    process.wait()


def _below(pid: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_below(child)]
    return found


def _keep_what_was_built(case: Case, job: Path) -> None:
    """Compiling takes longer than crashing: the next run finds it."""
    if (job / "build").is_dir() and not (case.folder / "build").exists():
        with contextlib.suppress(OSError):  # a set that is read-only
            shutil.copytree(job / "build", case.folder / "build", symlinks=True)


def _keep(root: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("stdout", "stderr", "report.json"):
        (folder / name).unlink(missing_ok=True)
        if (root / name).exists():
            shutil.copy(root / name, folder / name)


def read_report(path: Path) -> tuple[dict[str, Any] | None, str]:
    try:
        report = json.loads(path.read_text(errors="replace"))
    except FileNotFoundError:
        return None, "no report"
    except ValueError as error:
        return None, f"unreadable report: {error}"
    return (report, "") if isinstance(report, dict) else (None, "the report is no object")
