"""Programs that are not run by faultlens, but call faultlens.install(): they end as without it, and leave a report."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from faultlens.agent import LIBRARY
from faultlens.records import report_file
from faultlens.records.report_file import Report

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="needs the agent: a C compiler")

INSTALL = "import faultlens; faultlens.install(); faultlens.install()\n"
SEGFAULT = "import ctypes\ndef work():\n    ctypes.string_at(0)\n"


@dataclass(frozen=True)
class Ended:
    status: int  # negative: the signal it died by
    stdout: str
    stderr: str
    home: Path

    @property
    def reports(self) -> list[Report]:
        return [report_file.read(path) for path in sorted(self.home.glob("*/report.json"))]

    @property
    def report(self) -> Report:
        (report,) = self.reports
        return report


Start = Callable[..., Ended]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def run(text: str, *prefix: str) -> Ended:
        """Returns when nobody has its stderr any more, the helper process included."""
        program, home = tmp_path / "main.py", tmp_path / "home"
        program.write_text(text)
        environment = {**os.environ, "FAULTLENS_HOME": str(home), "TF_CPP_MIN_LOG_LEVEL": "2"}
        command = [*prefix, sys.executable, str(program)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        return Ended(done.returncode, done.stdout, done.stderr, home)

    return run


def verdict(report: Report) -> tuple[str, int | None]:
    """The cause, and the innermost line of the program that the crashed thread was in."""
    thread = report.crash.crashed_thread
    lines = [frame.line for frame in thread.frames if (frame.file or "").endswith("main.py")] if thread else []
    return report.diagnoses[0].cause, lines[0] if lines else None


FAULTHANDLER = "import faulthandler; faulthandler.enable()\n"
THREAD = "import threading; t = threading.Thread(target=work); t.start(); t.join()\n"
HANDLER = "import os, signal, sys\nsignal.signal(signal.SIGABRT, lambda *_: sys.exit(3))\n"
FORK = "import os\nif (pid := os.fork()) == 0:\n    work()\nprint(os.waitpid(pid, 0)[1])\n"
OVERFLOW = (
    "import ctypes, sys\nsys.setrecursionlimit(10**9)\nCallback = ctypes.CFUNCTYPE(None)\n"
    "def work():\n    Callback(work)()\nwork()\n"
)
SEGV, ABRT, KILL = -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGKILL


@pytest.mark.parametrize(
    ("before", "after", "status", "expected"),
    [
        pytest.param("", SEGFAULT + "work()\n", SEGV, ("null-pointer-passed", 4), id="segfault"),
        pytest.param(
            "import sys; sys.executable = ''\n", SEGFAULT + "work()\n", SEGV, ("null-pointer-passed", 5), id="embedded"
        ),
        pytest.param("", SEGFAULT + THREAD, SEGV, ("null-pointer-passed", 4), id="in a thread"),
        pytest.param("", OVERFLOW, SEGV, ("stack-overflow", 6), id="stack overflow"),
        pytest.param(
            FAULTHANDLER, SEGFAULT + "work()\n", SEGV, ("null-pointer-passed", 5), id="faulthandler came before"
        ),
        pytest.param(
            "", FAULTHANDLER + SEGFAULT + "work()\n", SEGV, ("null-pointer-passed", 5), id="faulthandler came after"
        ),
        pytest.param(HANDLER, "os.abort()\n", ABRT, ("signal-raised-by-program", 4), id="a handler that never runs"),
        pytest.param("", HANDLER + "os.abort()\n", ABRT, ("signal-raised-by-program", 4), id="a handler set later"),
        pytest.param("", SEGFAULT + FORK, 0, ("null-pointer-passed", 4), id="a forked child"),
        pytest.param(
            "",
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n",
            KILL,
            ("signal-raised-by-program", None),
            id="SIGKILL",
        ),
    ],
)
def test_a_crash_ends_as_alone_and_leaves_a_report(
    start: Start, before: str, after: str, status: int, expected: tuple[str, int | None]
) -> None:
    alone = start(before + "\n" + after)
    assert (alone.status, alone.reports) == (status, [])
    done = start(before + INSTALL + after)
    assert (done.status, done.stdout) == (alone.status, alone.stdout)
    assert verdict(done.report) == expected
    assert expected[0] in done.stderr
    if FAULTHANDLER in before + after:
        assert "Fatal Python error: Segmentation fault" in done.stderr


@pytest.mark.parametrize(
    ("program", "status"),
    [
        pytest.param("print('well')\n", 0, id="well"),
        pytest.param("import os; os._exit(4)\n", 4, id="an exit status"),
        pytest.param("1 / 0\n", 1, id="an exception"),
        pytest.param("import os; os.kill(os.getpid(), 15)\n", -signal.SIGTERM, id="asked to end"),
        pytest.param(
            HANDLER.replace("sys.exit(3)", "print('alive')") + "for _ in range(3): signal.raise_signal(6)\n",
            0,
            id="a handler that recovers",
        ),
        pytest.param(HANDLER + "os.kill(os.getpid(), 6); signal.pause()\n", 3, id="a handler that ends it"),
    ],
)
def test_other_ends_are_none_of_our_business(start: Start, program: str, status: int) -> None:
    alone, done = start("\n" + program), start(INSTALL + program)
    assert (done.status, done.stdout, done.stderr) == (alone.status, alone.stdout, alone.stderr)
    assert (done.status, done.reports) == (status, [])


NOTHING_TO_SEE = """\
import os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, lambda *_: print("SIGCHLD"))
signal.siginterrupt(signal.SIGCHLD, False)
def files():
    return {os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.exists(entry.path)}
before = files()
import faultlens
faultlens.install()
print([os.path.basename(name) for name in files() - before])
print(open("/proc/self/task/%d/children" % os.getpid()).read())
try:
    os.wait()
except ChildProcessError:
    print("no child")
"""


def test_the_program_does_not_notice_its_helper(start: Start) -> None:
    done = start(NOTHING_TO_SEE)
    assert (done.status, done.stdout, done.stderr) == (0, "['progress']\n\nno child\n", "")


CROWDED = """\
import os
from faultlens.supervise import installation
import faultlens
files = []
try:
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
faultlens.install()
faultlens.install()
print("went on")
"""


def test_what_cannot_be_installed_is_told_once(start: Start) -> None:
    done = start(CROWDED)
    assert (done.status, done.stdout) == (0, "went on\n")
    assert done.stderr.count("faultlens: crashes of this program will not be reported") == 1
    assert "Too many open files" in done.stderr


def test_killed_for_memory(start: Start, memory_limit: list[str]) -> None:
    done = start(INSTALL + "hoard = [bytearray(10_000_000) for _ in range(100)]\n", *memory_limit)
    assert done.status == KILL
    assert done.report.diagnoses[0].cause == "out-of-memory-kill"


DAEMON = """\
import ctypes, os, sys, time
import faultlens
faultlens.install()
if os.fork() == 0:
    os.setsid()
    for descriptor in range(3):
        os.close(descriptor)
    time.sleep(0.5)
    ctypes.string_at(0)
"""


def test_children_that_outlive_the_program_are_still_attended(start: Start) -> None:
    done = start(DAEMON)  # returns although the helper goes on: it has let go of stderr
    assert done.status == 0
    until(lambda: bool(done.reports))
    assert done.report.crash.outcome.signal == "SIGSEGV"


def test_processes_that_multiprocessing_spawns(start: Start) -> None:
    done = start(
        INSTALL + SEGFAULT + "if __name__ == '__main__':\n"
        "    import multiprocessing\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work)\n"
        "    child.start(); child.join(); print(child.exitcode)\n"
    )
    assert (done.status, done.stdout) == (0, "-11\n")
    assert verdict(done.report) == ("null-pointer-passed", 4)


@pytest.mark.tensorflow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_an_op_of_tensorflow(start: Start) -> None:
    done = start(
        INSTALL + "import tensorflow as tf\n"
        "@tf.function\n"
        "def step(x):\n"
        "    zero, peephole = tf.zeros([2, 5]), tf.zeros([5])\n"
        "    return tf.raw_ops.BlockLSTMV2(\n"
        "        seq_len_max=tf.constant(9, tf.int64), x=x, cs_prev=zero, h_prev=zero, w=tf.zeros([9, 20]),\n"
        "        wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20]))\n"
        "step(tf.zeros([3, 2, 4]))\n"
    )
    assert done.status == -signal.SIGABRT
    best = done.report.diagnoses[0]
    assert (best.cause, best.location and best.location.line) == ("op-check-failed", 6)
    kernel = done.report.crash.kernels[0]
    assert kernel.op == "BlockLSTMV2"
    # stderr is a pipe: the line was found in memory, as it was printed
    line = done.report.crash.output.stderr
    assert line in done.stderr and line.endswith("Check failed: limit <= dim0_size (4 vs. 3)")


SERVER = """\
import os
import faultlens
faultlens.install()

def app(environ, start_response):
    if environ["PATH_INFO"] == "/die":
        os.abort()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"fine"]
"""


@pytest.fixture(params=[(), ("--preload",)], ids=["in the worker", "before the fork"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    pytest.importorskip("gunicorn")
    (tmp_path / "main.py").write_text(SERVER)
    command = [sys.executable, "-m", "gunicorn", *request.param, "-b", "unix:socket", "main:app"]
    environment = {**os.environ, "FAULTLENS_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate(timeout=60)


def test_a_worker_of_gunicorn(server: subprocess.Popen[str], tmp_path: Path) -> None:
    ended = Ended(0, "", "", tmp_path / "home")
    until(lambda: get(tmp_path / "socket", "/").endswith(b"fine"))
    get(tmp_path / "socket", "/die")
    until(lambda: get(tmp_path / "socket", "/").endswith(b"fine"))  # by another worker
    until(lambda: bool(ended.reports))
    assert verdict(ended.report) == ("signal-raised-by-program", 7)
    server.terminate()
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "signal-raised-by-program" in said and "SIGABRT" in said


def get(address: Path, path: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        try:
            client.connect(os.path.relpath(address))
            client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return b"".join(iter(lambda: client.recv(4096), b""))
        except OSError:
            return b""


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")
