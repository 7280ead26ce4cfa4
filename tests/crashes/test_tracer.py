"""Without the agent: ptrace sees the same facts."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import pytest

Call = Callable[..., str]
PTRACE = ["--capture", "ptrace"]


@pytest.mark.parametrize(
    ("expression", "name", "code", "function"),
    [
        ("read_null", "SIGSEGV", "SEGV_MAPERR", "read_null"),
        ("write_read_only", "SIGSEGV", "SEGV_ACCERR", "write_read_only"),
        ("divide(1, 0)", "SIGFPE", "FPE_INTDIV", "divide"),
        ("trap", "SIGILL", "ILL_ILLOPN", "trap"),
        ("recurse_in_thread", "SIGSEGV", "SEGV_MAPERR", "recurse"),
        ("free_twice", "SIGABRT", "SI_TKILL", "free_twice"),
    ],
)
def test_fatal_signals(run, call: Call, expression: str, name: str, code: str, function: str) -> None:
    done = run(call(expression), options=PTRACE)
    assert done.returncode == -signal.Signals[name]
    assert (done.died.method, done.died.fault.signal) == ("tracer", name)
    assert done.died.fault.code in (code, "SEGV_ACCERR" if expression.startswith("recurse") else code)
    assert function in [frame.function for frame in done.died.crashed_thread.frames]
    assert 4 in [frame.line for frame in done.died.launching_thread.frames if frame.kind == "python"]


def test_children(run, call: Call) -> None:
    inner = call("read_null")
    parent = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {inner!r}]).returncode)"
    done = run(parent, options=PTRACE)
    assert (done.returncode, done.stdout) == (0, "-11\n")
    assert done.died.children[0].fault.address == 0


def test_threads_and_ends(run) -> None:
    code = (
        "import os, threading, sys\n"
        "threads = [threading.Thread(target=os.write, args=(1, b'%d\\n' % i)) for i in range(50)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "sys.exit(9)\n"
    )
    done = run(code, options=PTRACE)
    assert done.returncode == 9
    assert len(done.stdout.split()) == 50


def test_a_hang(run) -> None:
    done = run("import time\nwhile True: time.sleep(1)", options=[*PTRACE, "--timeout", "1"])
    assert done.returncode == -signal.SIGTERM
    assert done.died.outcome.kind == "timeout"
    assert any(frame.line == 2 for thread in done.died.threads for frame in thread.frames)


def test_a_job_stopped_and_continued(run) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); print('went on')"
    waker = (
        "import os, subprocess, sys, time, signal\n"
        f"p = subprocess.Popen([sys.executable, '-c', {code!r}])\n"
        "time.sleep(0.5); p.send_signal(signal.SIGCONT); sys.exit(p.wait())\n"
    )
    done = run([sys.executable, "-c", waker], options=PTRACE)
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_exit_status_only(run, call: Call) -> None:
    done = run(call("read_null"), options=["--capture", "none"])
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.method, done.died.outcome.signal, done.died.fault) == ("status", "SIGSEGV", None)
