"""Crashes below programs that start processes for a living: servers, test runners, pools, notebooks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import FAULTLENS

from faultlens.records import report_file
from faultlens.records.report_file import Report

SERVER = """\
import ctypes

def app(environ, start_response):
    if environ["PATH_INFO"] == "/die":
        die()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"fine"]

def die():
    ctypes.CDLL(None).abort()
"""
TEST = """\
import ctypes

def test_fine():
    pass

def test_crash():
    ctypes.string_at(0)
"""
POOL = """\
import ctypes
from joblib import Parallel, delayed

def work(number):
    return ctypes.string_at(0) if number == 3 else number

if __name__ == "__main__":
    Parallel(n_jobs=2)(delayed(work)(number) for number in range(6))
"""
WAITING_POOL = """\
import ctypes, multiprocessing

def work(number):
    return ctypes.string_at(0) if number == 3 else number

if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        pool.map(work, range(6))
"""
CELLS = ["import os", "def boom():\n    os.abort()\nboom()"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "FAULTLENS_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def _reports(home: Path) -> list[Path]:
    return sorted(home.glob("*/report.json"))


def _run(command: list[str], folder: Path, home: Path) -> tuple[subprocess.CompletedProcess[str], Report]:
    words = [*FAULTLENS, "run", "--", sys.executable, *command]
    done = subprocess.run(words, cwd=folder, env=_environment(home), capture_output=True, text=True, timeout=120)
    (path,) = _reports(home)  # what was kept when the worker died is what is kept at the end
    return done, report_file.read(path)


def _is_about_the_worker(report: Report, file: str, line: int) -> None:
    best = report.diagnoses[0]
    assert best.cause not in ("clean-exit", "python-exception", "unknown")
    assert best.location is not None
    assert best.location.file.endswith(file)
    assert best.location.line == line
    assert not any("no fatal signal" in item.fact for item in best.evidence)


def test_xdist(tmp_path: Path, home: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(TEST)
    done, report = _run(["-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "test_it.py"], tmp_path, home)
    assert done.returncode == 1
    assert "then its parent exited with code 1" in " ".join(done.stderr.split())
    _is_about_the_worker(report, "test_it.py", 7)


def test_joblib(tmp_path: Path, home: Path) -> None:
    pytest.importorskip("joblib")
    (tmp_path / "pool.py").write_text(POOL)
    done, report = _run(["pool.py"], tmp_path, home)
    assert done.returncode == 1
    assert "TerminatedWorkerError" in done.stderr
    _is_about_the_worker(report, "pool.py", 5)


def test_nbconvert(tmp_path: Path, home: Path) -> None:
    pytest.importorskip("nbconvert")
    cells = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None} for text in CELLS
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "book.ipynb").write_text(json.dumps(notebook))
    done, report = _run(["-m", "nbconvert", "--to", "notebook", "--execute", "book.ipynb"], tmp_path, home)
    assert done.returncode == 1
    assert "DeadKernelError" in done.stderr
    _is_about_the_worker(report, ".py", 2)


class Server:
    def __init__(self, folder: Path, home: Path) -> None:
        (folder / "server.py").write_text(SERVER)
        self.address = str(folder / "socket")
        self.home = home
        command = [sys.executable, "-m", "gunicorn", "-w", "1", "-b", f"unix:{self.address}", "server:app"]
        self.process = subprocess.Popen(
            [*FAULTLENS, "run", "--", *command],
            cwd=folder,
            env={**_environment(home), "HOME": str(folder)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.until(lambda: self.get("/") == b"fine")

    def get(self, path: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            try:
                client.connect(self.address)
                client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                answer = b"".join(iter(lambda: client.recv(4096), b""))
            except OSError:
                return b""
        return answer.rpartition(b"\r\n\r\n")[2]

    def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(600):
            if is_so():
                return
            assert self.process.poll() is None
            time.sleep(0.05)
        raise AssertionError("it did not happen")

    def die(self) -> None:
        self.get("/die")
        self.until(lambda: self.get("/") == b"fine")  # by another worker


@pytest.fixture
def server(tmp_path: Path, home: Path) -> Iterator[Server]:
    """gunicorn, whose workers have a Python handler of SIGABRT, under `faultlens run`."""
    pytest.importorskip("gunicorn")
    made = Server(tmp_path, home)
    yield made
    subprocess.run(["pkill", "-KILL", "-f", made.address], check=False)
    made.process.kill()
    made.process.communicate(timeout=60)


def test_a_worker_is_told_of_at_once_and_its_like_are_counted(server: Server) -> None:
    server.die()
    server.until(lambda: bool(_reports(server.home)))
    server.die()
    server.die()
    (path,) = _reports(server.home)
    _is_about_the_worker(report_file.read(path), "server.py", 10)
    server.process.send_signal(signal.SIGTERM)
    _, said = server.process.communicate(timeout=60)
    assert server.process.returncode == 0
    assert said.count("died by SIGABRT at server.py:10") == 1
    assert f"faultlens show {path.parent.name[-8:]}" in said
    assert "3 processes of the program died here" in said
    assert _reports(server.home) == [path]
    assert report_file.read(path).crash.times == 3


def test_a_report_of_a_worker_outlives_faultlens(server: Server) -> None:
    server.die()
    server.until(server.home.exists)  # somebody is writing
    server.process.kill()
    for _ in range(600):
        if _reports(server.home):
            break
        time.sleep(0.05)
    (path,) = _reports(server.home)
    _is_about_the_worker(report_file.read(path), "server.py", 10)


def test_a_pool_is_ended_with_its_workers(tmp_path: Path, home: Path) -> None:
    """It waits for the answer of a worker that died, and starts a new one for each that is ended."""
    mark = f"pool_{os.getpid()}.py"
    (tmp_path / mark).write_text(WAITING_POOL)
    words = [*FAULTLENS, "run", "--timeout", "2", "--", sys.executable, mark]
    done = subprocess.run(words, cwd=tmp_path, env=_environment(home), capture_output=True, text=True, timeout=60)
    assert "null-pointer-passed" in done.stderr
    assert "then its parent was still running" in " ".join(done.stderr.split())
    time.sleep(0.5)
    assert subprocess.run(["pgrep", "-f", mark], capture_output=True).stdout == b""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.exit(0)", "process {pid} died by SIGABRT"),  # a death test
        ("time.sleep(2); sys.exit('error: no data')", "before python"),
    ],
)
def test_a_program_that_survived_a_child_is_not_explained_by_it(
    tmp_path: Path, home: Path, code: str, said: str
) -> None:
    program = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import os; os.abort()"])
print(child.pid, child.wait(), flush=True)
{code}
"""
    words = [*FAULTLENS, "run", "--", sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, env=_environment(home), capture_output=True, text=True, timeout=60)
    told = " ".join(done.stderr.split())
    assert said.format(pid=done.stdout.split()[0]) in told
    assert "error[" not in told


LAUNCHER = """\
import subprocess, sys, time
jobs = ["import ctypes; ctypes.string_at(0)", "import os; os.abort()", "import os; os.kill(os.getpid(), 8)"]
jobs = jobs + [f"import os, signal; os.kill(os.getpid(), {number})" for number in (4, 5, 7, 24, 31)][: int(sys.argv[1])]
for job in jobs:
    subprocess.run([sys.executable, "-c", job])
if sys.argv[3:]:
    time.sleep(3)
sys.exit(int(sys.argv[2]))
"""


def _launched(folder: Path, home: Path, *arguments: str) -> str:
    (folder / "launch.py").write_text(LAUNCHER)
    words = [*FAULTLENS, "run", "--", sys.executable, "launch.py", *arguments]
    done = subprocess.run(words, cwd=folder, env=_environment(home), capture_output=True, text=True, timeout=120)
    return done.stderr


@pytest.mark.parametrize("code", ["0", "3"])
@pytest.mark.parametrize("lingers", [(), ("lingers",)], ids=["at once", "later"])
def test_every_death_is_told_of_at_the_end(code: str, lingers: tuple[str, ...], tmp_path: Path, home: Path) -> None:
    said = _launched(tmp_path, home, "0", code, *lingers)
    closing = said[said.index("[FL") :]
    in_lines = [line for line in closing.splitlines() if line.startswith("faultlens: also process ")]
    in_full = said.count("error[FL")
    assert len(in_lines) + in_full == 3, said
    identities = [path.parent.name.rpartition("-")[2] for path in _reports(home)]
    assert all(line.rpartition("faultlens show ")[2] in identities for line in in_lines)


def test_many_deaths_are_counted(tmp_path: Path, home: Path) -> None:
    said = _launched(tmp_path, home, "5", "3").splitlines()
    assert sum(line.startswith("faultlens: also ") for line in said) == 5
    assert said[-1].endswith("more died: faultlens show --list")
