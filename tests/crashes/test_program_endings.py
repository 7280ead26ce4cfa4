"""Ends that are no native crash, or whose cause lies outside the program, told apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from faultlens.diagnosis.rank import diagnose


def test_a_healthy_program(run) -> None:
    done = run("print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert done.died.outcome.kind == "ok"
    assert done.saved == []


def test_a_python_exception_is_not_a_crash(run) -> None:
    done = run("raise ValueError('bad shape')")
    assert done.returncode == 1
    assert (done.died.outcome.kind, done.died.outcome.signal) == ("exception", None)
    assert done.stderr.endswith("ValueError: bad shape\n")
    assert done.saved == []


def test_exit_code_139_is_not_a_segmentation_fault(run) -> None:
    done = run("import sys; sys.exit(139)")
    assert (done.returncode, done.stderr) == (139, "")
    assert (done.died.outcome.kind, done.died.outcome.exit_code) == ("exit", 139)


def test_killed_from_outside(run) -> None:
    done = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    assert done.died.outcome.signal == "SIGKILL"
    assert done.died.fault is None
    before, after = done.died.cgroup_before, done.died.cgroup
    if before and after:
        assert before.oom_kills == after.oom_kills


def test_raised_by_the_program_itself(run) -> None:
    done = run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.fault.code, done.died.fault.address) == ("SI_USER", None)
    assert done.died.fault.sender_pid == done.died.pid


def test_killed_by_the_memory_limit(run, memory_limit: list[str]) -> None:
    done = run("hoard = []\nwhile True: hoard.append(bytearray(10_000_000))", prefix=memory_limit)
    assert done.returncode == -signal.SIGKILL
    crash = done.died
    assert crash.cgroup.oom_kills == crash.cgroup_before.oom_kills + 1
    assert crash.cgroup.memory_limit < 300_000_001
    if os.access("/dev/kmsg", os.R_OK):
        assert any("Killed process" in line for line in crash.kernel_log)
    assert max(sample.rss_anonymous or 0 for sample in crash.timeline) > 10_000_000


def test_a_crash_where_memory_is_nearly_used_up(run, memory_limit: list[str]) -> None:
    """Looking at it takes memory of the same group: the kernel is to kill the look, not the program."""
    fill = (
        "import ctypes, mmap, os, pathlib\n"
        "group = next(line.split(':', 2)[2] for line in open('/proc/self/cgroup').read().split()\n"
        "             if line.split(':')[1] in ('', 'memory') or 'memory' in line.split(':')[1].split(','))\n"
        "roots = ('/sys/fs/cgroup/memory' + group, '/sys/fs/cgroup' + group)\n"
        "used = next(p for r in roots for n in ('memory.usage_in_bytes', 'memory.current')\n"
        "            if (p := pathlib.Path(r, n)).exists())\n"
        "kept = []\n"
        "while int(used.read_text()) < 300_000_000 - 10_000_000:\n"
        "    kept.append(mmap.mmap(-1, 1 << 18)); kept[-1].write(b'x' * (1 << 18))\n"
        "ctypes.string_at(8)\n"
    )
    done = run(fill, prefix=memory_limit)
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.fault.signal, done.died.fault.address) == ("SIGSEGV", 8)


def test_sigterm_reaches_the_program(run, tmp_path: Path) -> None:
    program = (
        "import signal, sys, time\n"
        "def leave(*_): print('asked to stop', flush=True); sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "open('ready', 'w').close()\n"
        "time.sleep(60)\n"
    )

    def terminate() -> None:
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        subprocess.run(["pkill", "-TERM", "-f", f"faultlens run --json {tmp_path}"], check=True)

    threading.Thread(target=terminate, daemon=True).start()
    done = run(program)
    assert (done.returncode, done.stdout) == (7, "asked to stop\n")
    assert done.died.handed_on[0].startswith("SIGTERM from process")


def test_sigterm_without_a_handler(run) -> None:
    done = run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert done.returncode == -signal.SIGTERM
    assert done.died.outcome.signal == "SIGTERM"


def test_a_hang_is_ended_with_the_stacks_of_all_threads(run) -> None:
    program = (
        "import threading\n"
        "lock = threading.Lock()\n"
        "lock.acquire()\n"
        "def wait(): lock.acquire()\n"
        "threading.Thread(target=wait).start()\n"
        "lock.acquire()\n"
    )
    done = run(program, options=["--timeout", "1"])
    assert done.returncode == -signal.SIGTERM
    assert done.died.outcome.kind == "timeout"
    lines = {
        frame.line
        for thread in done.died.threads
        for frame in thread.frames
        if frame.kind == "python" and frame.file == "<string>"
    }
    assert {4, 6} <= lines


def test_a_hang_shows_the_children_too(run) -> None:
    program = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time\\nwhile True: time.sleep(1)'])\n"
    )
    done = run(program, options=["--timeout", "1"])
    assert [child.outcome.kind for child in done.died.children] == ["timeout"]
    assert any(frame.line == 2 for thread in done.died.children[0].threads for frame in thread.frames)


POLLS = """
import threading, time
done, files = threading.Event(), 0
while not done.wait(0.2):
    {counts}
    print("files read:", files, flush=True)
"""


@pytest.mark.parametrize(("counts", "cause"), [("files += 1", "time-limit"), ("pass", "hang")])
def test_a_loop_around_a_short_wait_is_judged_by_what_it_prints(run, tmp_path: Path, counts: str, cause: str) -> None:
    (tmp_path / "main.py").write_text(POLLS.format(counts=counts))
    done = run([sys.executable, "main.py"], options=["--timeout", "4"])
    assert diagnose(done.died).diagnoses[0].cause == cause


def test_a_program_that_computes_until_its_time_limit_did_not_hang(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("while True:\n    sum(range(10_000))\n")
    done = run([sys.executable, "main.py"], options=["--timeout", "1"])
    assert done.died.outcome.kind == "timeout"
    assert "time-limit: still working at the time limit of 1 s" in done.stderr
    assert done.died.activity.cpu > 0


def test_bytes_that_arrive_over_tcp_are_work(run, tmp_path: Path) -> None:
    """They are not among those that the kernel counts for a process."""
    main = (
        "import socket, threading, time\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "other, _ = server.accept()\n"
        "while True:\n"
        "    other.sendall(bytes(20_000))\n"
        "    client.recv(20_000, socket.MSG_WAITALL)\n"
        "    time.sleep(0.1)\n"
    )
    (tmp_path / "main.py").write_text(main)
    done = run([sys.executable, "main.py"], options=["--timeout", "1"])
    assert done.died.activity.read >= 20_000
    assert "time-limit" in done.stderr


DEADLOCKS = {
    "Python locks": (
        "a, b = threading.Lock(), threading.Lock()\n"
        "def take():\n"
        "    with b:\n"
        "        time.sleep(0.3)\n"
        "        with a: pass\n"
        "threading.Thread(target=take, daemon=True).start()\n"
        "with a:\n"
        "    time.sleep(0.3)\n"
        "    with b: pass\n",
        ("the main thread waits for `b`", "(take) waits for `a`"),
    ),
    "RLocks in variables": (
        "def take(first, second):\n"
        "    with first:\n"
        "        time.sleep(0.3)\n"
        "        with second: pass\n"
        "a, b = threading.RLock(), threading.RLock()\n"
        "threading.Thread(target=take, args=(a, b), daemon=True).start()\n"
        "take(b, a)\n",
        ("the main thread waits for `second`", "(take) waits for `second`", "which the main thread holds"),
    ),
    "a mutex and the GIL": (
        "calls, keeps_gil = ctypes.CDLL(library), ctypes.PyDLL(library)\n"
        "call = ctypes.CFUNCTYPE(None)(print)\n"
        "def take(): calls.lock_and_call(call)\n"
        "threading.Thread(target=take, daemon=True).start()\n"
        "time.sleep(0.1)\n"
        "keeps_gil.lock_mutex()\n",
        ("the main thread waits for the mutex at 0x", "(take) waits for the GIL", "which the main thread holds"),
    ),
}


@pytest.mark.parametrize("kind", DEADLOCKS)
def test_a_deadlock_names_who_holds_what(run, native: Path, tmp_path: Path, kind: str) -> None:
    source, expected = DEADLOCKS[kind]
    main = tmp_path / "main.py"
    main.write_text(f"import ctypes, sys, threading, time\nlibrary = {str(native)!r}\n{source}")
    done = run([sys.executable, "main.py"], options=["--timeout", "1.5"])
    told = " ".join(done.stderr.split())
    assert "hang: deadlock: " in told
    assert all(words in told for words in expected), told


def test_no_such_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "faultlens", "run", "--", "no-such-program"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("faultlens: Cannot run no-such-program: no such program. ")
    assert done.stderr.count("\n") == 1
