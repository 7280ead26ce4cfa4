"""Runs a candidate in a sandbox and says how it ended.

A sandbox is a folder of its own and no other to write to, a session of its own, nothing on standard input, no core
files, and bounds on time and memory; see `faultlens.sandbox`.
`WarmTrials` forks from a Python that has imported TensorFlow already and looks at a death quickly; `captured` starts
everything anew and looks at it as `faultlens run` does."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.diagnosis.evidence.children import crashed_child
from faultlens.errors import FaultlensError
from faultlens.guard_alloc.hunting import HuntOptions
from faultlens.inspection import numbering, process
from faultlens.inspection.endings import outcome_of
from faultlens.op_model.files import SCRIPT, Files
from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome, Output
from faultlens.records.report_file import Report
from faultlens.sandbox.guest import confinement, guard
from faultlens.sandbox.guests import guest_command, inherited
from faultlens.sandbox.trial.look import QuickLook
from faultlens.system import own_process
from faultlens.system.machine import machine_state
from faultlens.system.procfs import resident

SERVER = Path(guard.FOLDER, "scripts.py")
IMPORT_SECONDS = 120.0
POLL_S = 0.002
MEMORY_POLL_S = 0.1
TAIL_BYTES = 64 * 1024
SHARE_OF_MEMORY = 0.6  # of what is available


class Bounds(NamedTuple):
    seconds: float
    memory: int  # bytes of resident memory


class Surroundings(NamedTuple):
    """What a trial runs in, apart from its own folder."""

    python: str
    environment: Mapping[str, str] = {}  # on top of ours
    with_children: bool = False  # the death of a process that the script started counts as its own
    hunt: HuntOptions | None = None  # which blocks of memory `captured` puts between guards

    def variables(self, home: Path) -> dict[str, str]:
        where = {"FAULTLENS_HOME": str(home), "TMPDIR": str(home)}
        return {**inherited(os.environ), **self.environment, **where, "PYTHONDONTWRITEBYTECODE": "1"}


def default_bounds(seconds: float) -> Bounds:
    machine = machine_state()
    return Bounds(seconds, int((machine.memory_available or 4 << 30) * SHARE_OF_MEMORY))


class WarmTrials:
    """A server in the program's Python, with `modules` imported, that forks a child for every trial."""

    def __init__(self, surroundings: Surroundings, modules: Sequence[str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faultlens-repro-"))
        self._area = SharedArea()
        self._look = QuickLook()
        self._means = confinement.available()
        if self._means.processes:
            self._area.area.supervisor_pid = 1  # the only one above them that they know
        self._with_children = surroundings.with_children
        environment = launch.agent_environment(surroundings.variables(self._folder), self._area.path, True)
        try:
            self._server = subprocess.Popen(
                guest_command(surroundings.python, SERVER, json.dumps(self._setup()), *modules),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # a line that was read ahead would not be seen by select()
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
            ready = self._answer(time.monotonic() + IMPORT_SECONDS)
        except OSError as error:
            self.close()
            raise FaultlensError(
                f"Cannot run {surroundings.python}: {error.strerror}.", "Name the program's Python with --python."
            ) from error
        except BaseException:
            self.close()
            raise
        if ready is None:
            self.close()
            raise FaultlensError(f"{surroundings.python} could not be started.", "Name another one with --python.")
        self.missing: list[str] = ready["missing"]

    def __enter__(self) -> WarmTrials:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _setup(self) -> dict[str, Any]:
        return {"means": self._means, "writable": [str(self._folder)]}

    def close(self) -> None:
        if server := getattr(self, "_server", None):
            guard.end(server)
            server.stdin.close()
            server.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, files: Files, bounds: Bounds, in_order: bool = False, arguments: Sequence[str] = ()) -> Crash:
        """How the script ended. `in_order`: what happens while the interpreter shuts down counts as well."""
        with _trial_folder(self._folder, files) as folder:
            request = {"script": str(folder / SCRIPT), "folder": str(folder)}
            return self._run({**request, "arguments": arguments, "in order": in_order}, bounds)

    def _run(self, request: dict[str, Any], bounds: Bounds) -> Crash:
        outputs = {name: str(self._folder / name) for name in ("stdout", "stderr")}
        for path in outputs.values():
            Path(path).unlink(missing_ok=True)
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({**request, **outputs}).encode() + b"\n")
        begun = self._answer(time.monotonic() + IMPORT_SECONDS)
        if begun is None:
            raise FaultlensError("The Python that runs the trials has died.", "Try again.")
        pid = numbering.seen_from_here(begun["pid"], self._server.pid) if self._means.processes else begun["pid"]
        watch = _Watch(pid, bounds)
        looks: dict[int, Crash] = {}
        ended = None
        while ended is None:
            ended = self._answer(time.monotonic() + POLL_S)
            for slot in list(self._area.waiting()):
                death = self._area.accept(slot)
                if self._means.processes:
                    death = numbering.death_seen_from_here(death, self._server.pid)
                try:
                    if death.pid == pid or self._with_children:
                        with contextlib.suppress(OSError):
                            looks.setdefault(death.pid, self._look(death))
                finally:
                    self._area.release(slot)
            watch.check()
        output = Output(stdout=_tail(outputs["stdout"]), stderr=_tail(outputs["stderr"]))
        outcome = outcome_of(ended["status"], output.stderr)
        if pid not in looks and looks:  # it survived a process that it had started
            crash = next(iter(looks.values()))
        else:
            crash = replace(looks.get(pid) or Crash(outcome=outcome, method="status", pid=pid), outcome=outcome)
        crash = replace(crash, output=output)
        return watch.verdict(crash)

    def _answer(self, deadline: float) -> dict[str, Any] | None:
        """The next line from the server; None when there is none in time."""
        assert self._server.stdout is not None
        left = max(deadline - time.monotonic(), 0.0)
        if not select.select([self._server.stdout], [], [], left)[0]:
            return None
        line = self._server.stdout.readline()
        if not line:
            raise FaultlensError("The Python that runs the trials has died.", "Name another one with --python.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def captured(files: Files, surroundings: Surroundings, bounds: Bounds, writable: Sequence[str] = ()) -> Crash:
    """How the script ends when it is started anew, seen as `faultlens run` sees it.

    `writable`: folders besides its own."""
    top = Path(tempfile.mkdtemp(prefix="faultlens-repro-"))
    try:
        with _trial_folder(top, files) as folder:
            pid = os.fork()
            if pid == 0:
                _supervise_in_child(folder, top, surroundings, bounds, [str(top), *writable])
            watch = _Watch(pid, bounds._replace(seconds=bounds.seconds + IMPORT_SECONDS))
            try:
                while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    watch.check()
                    time.sleep(POLL_S)
            finally:
                guard.end_by_number(pid)
        report = top / "report.json"
        if report.exists():
            crash = report_file.read(report).crash
            crash = (crashed_child(crash) if surroundings.with_children else None) or crash
        else:
            crash = Crash(outcome=Outcome(kind="exit"), method="status", gaps=("it could not be watched",))
        return watch.verdict(crash)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _supervise_in_child(
    folder: Path, top: Path, surroundings: Surroundings, bounds: Bounds, writable: Sequence[str]
) -> None:
    """Never returns."""
    try:
        from faultlens.supervise.supervisor import Options, supervise

        os.setsid()
        os.chdir(folder)
        own_process.no_core_file()
        for descriptor, path in enumerate((Path(os.devnull), top / "stdout", top / "stderr")):
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        means = confinement.available()
        guard.enter(means, writable)
        confinement.confine(means, writable)
        os.environ.clear()
        os.environ.update(surroundings.variables(top))
        problem = launch.agent_problem(surroundings.python)
        options = Options("tracer" if problem else "agent", timeout=bounds.seconds, hunt=surroundings.hunt)
        crash = supervise([surroundings.python, SCRIPT], options, lambda _: None).crash
        (top / "report.json").write_bytes(report_file.to_json(Report(outcome=crash.outcome, crash=crash)))
    except BaseException as error:
        print(error, file=sys.stderr)
    finally:
        os._exit(0)


class _Watch:
    """Ends a process that takes too long or too much memory."""

    def __init__(self, pid: int, bounds: Bounds) -> None:
        self._pid = pid
        self._bounds = bounds
        self._deadline = time.monotonic() + bounds.seconds
        self._next_look = 0.0
        self._problem: str | None = None

    def check(self) -> None:
        now = time.monotonic()
        if self._problem is None and now > self._deadline:
            self._end(f"it was still running after {self._bounds.seconds:g} s")
        if self._problem is None and now > self._next_look:
            self._next_look = now + MEMORY_POLL_S
            if _resident(self._pid) > self._bounds.memory:
                self._end(f"it took more than {self._bounds.memory >> 20} MiB of memory")

    def verdict(self, crash: Crash) -> Crash:
        """What we ended is no death of its own."""
        if self._problem is None:
            return crash
        return Crash(outcome=Outcome(kind="timeout"), method="status", output=crash.output, gaps=(self._problem,))

    def _end(self, problem: str) -> None:
        self._problem = problem
        for pid in (*process.descendants(self._pid), self._pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _resident(root: int) -> int:
    """Bytes in memory of a process and those below it."""
    return sum(map(resident, (root, *process.descendants(root))))


@contextlib.contextmanager
def _trial_folder(top: Path, files: Files) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=top))
    try:
        write_files(folder, files)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_files(folder: Path, files: Files) -> None:
    for name, data in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise FaultlensError(f"The file {name!r} would lie outside of its folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0))
            return file.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""
