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

from faultlens.environment.cgroup import cgroup_of


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


@pytest.fixture
def memory_limit() -> list[str]:
    """A command prefix that runs the rest in a control group of 300 MB."""
    cgroup = cgroup_of()
    if os.geteuid() or cgroup is None or cgroup.memory is None:
        pytest.skip("needs root and a memory control group")
    name = f"faultlens-test-{os.getpid()}"
    root = next(p for p in (cgroup.memory, *cgroup.memory.parents) if not (p.parent / "cgroup.procs").exists())
    folder = root / name
    try:
        if cgroup.version == 2:
            (root / "cgroup.subtree_control").write_text("+memory")
        folder.mkdir()
        (folder / ("memory.max" if cgroup.version == 2 else "memory.limit_in_bytes")).write_text("300000000")
    except OSError as error:
        pytest.skip(f"cannot make a control group: {error}")
    yield ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]
    for _ in range(50):
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.1)


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
    assert done.died.outcome.kind == "hang"
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
    assert [child.outcome.kind for child in done.died.children] == ["hang"]
    assert any(frame.line == 2 for thread in done.died.children[0].threads for frame in thread.frames)


def test_no_such_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "faultlens", "run", "--", "no-such-program"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("faultlens: Cannot run no-such-program: no such program. ")
    assert done.stderr.count("\n") == 1
