"""What a trial must not be able to do, whatever the reduced program says, and what it must still be able to do."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultlens.records.crash import Crash
from faultlens.sandbox.guest import landlock
from faultlens.sandbox.trial.trial import SCRIPT, Bounds, Surroundings, WarmTrials, captured

BOUNDS = Bounds(seconds=20, memory=2 << 30)
PYTHON = Surroundings(sys.executable)
REFUSALS = ("PermissionError", "Read-only file system", "ProcessLookupError")

needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="needs Landlock")
needs_scopes = pytest.mark.skipif(landlock.version() < landlock.WITH_SIGNALS, reason="needs Linux 6.12")


@pytest.fixture(params=["warm", "anew"])
def trial(request: pytest.FixtureRequest):
    """trial(text) → how the program ended, forked from a server or started anew."""
    if request.param == "anew":
        yield lambda text: captured({SCRIPT: text.encode()}, PYTHON, BOUNDS)
        return
    with WarmTrials(PYTHON, ()) as trials:
        yield lambda text: trials.run({SCRIPT: text.encode()}, BOUNDS)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def refused(crash: Crash) -> bool:
    said = crash.output.stderr or ""
    return crash.outcome.kind == "exception" and (any(word in said for word in REFUSALS))


@needs_landlock
def test_files_elsewhere_stay_as_they_are(trial, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    assert refused(trial(f"open({str(precious)!r}, 'w')"))
    assert refused(trial(f"import os; os.remove({str(precious)!r})"))
    assert refused(trial(f"import shutil; shutil.rmtree({str(tmp_path)!r})"))
    assert refused(trial(f"import os; os.mkdir({str(tmp_path / 'new')!r})"))
    trial(f"import subprocess; subprocess.run(['rm', '-rf', {str(tmp_path)!r}])")
    assert precious.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@needs_scopes
def test_other_processes_live_on(trial, bystander: subprocess.Popen[bytes]) -> None:
    assert refused(trial(f"import os; os.kill({bystander.pid}, 9)"))
    assert bystander.poll() is None


@needs_scopes
def test_nothing_is_connected_to(trial) -> None:
    assert refused(trial("import socket; socket.create_connection(('127.0.0.1', 9), 2)"))


def test_ordinary_programs_run_as_ever(trial) -> None:
    ended = trial(
        "import os, sys, tempfile, multiprocessing, threading\n"
        "open('data', 'w').write('1'); os.remove('data')\n"
        "open(os.path.join(tempfile.mkdtemp(), 'x'), 'w').write('1')\n"
        "open('/dev/null', 'w').write('1')\n"
        "worker = multiprocessing.Process(target=print, args=('worker',), daemon=True)\n"
        "worker.start(); worker.join()\n"
        "assert worker.exitcode == 0 and sys.stdin.read() == ''\n"
        "print('fine')\n"
    )
    assert (ended.outcome.kind, (ended.output.stdout or "").split()) == ("ok", ["worker", "fine"]), ended.output


@pytest.mark.parametrize(("text", "signal"), [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 11)", "SIGSEGV")])
def test_a_program_may_end_itself(trial, text: str, signal: str) -> None:
    assert trial(f"import os; {text}").outcome.signal == signal


def test_what_takes_too_long_or_too_much_is_ended() -> None:
    with WarmTrials(PYTHON, ()) as trials:
        ended = trials.run({SCRIPT: b"while True: pass"}, Bounds(seconds=1, memory=2 << 30))
        assert ended.outcome.kind == "timeout"
        assert "still running" in ended.gaps[0]
        ended = trials.run({SCRIPT: b"x = b'1' * (400 << 20)\nimport time; time.sleep(20)"}, Bounds(15, 200 << 20))
        assert "memory" in ended.gaps[0]


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execlp("sleep", "sleep", "{mark}")
    os._exit(0)
os.wait()
time.sleep(0.1)
"""


def test_nothing_is_left_behind(trial) -> None:
    mark = f"9{secrets.randbelow(10**8):08}"
    assert trial(DAEMON.format(mark=mark)).outcome.kind == "ok"
    deadline = time.monotonic() + 5
    while _runs(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(mark)


def _runs(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False
