"""Signals reach the program exactly once, whoever they were sent to."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FAULTLENS, PROGRAMS

COUNTING = """
import signal, sys, time
seen = []
def note(number, _): seen.append(number)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, note)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
print('ready', flush=True)
while signal.SIGUSR2 not in seen:  # the last to be sent
    time.sleep(0.01)
time.sleep(0.3)  # for one that comes twice
print(*(int(number) for number in seen if number != signal.SIGUSR2), flush=True)
"""
SENT = [
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM, signal.SIGPIPE, signal.SIGWINCH),
    *(signal.SIGXCPU, signal.SIGXFSZ, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGURG),
    *(signal.SIGQUIT, signal.SIGCONT, signal.SIGABRT, signal.SIGRTMIN + 3, signal.SIGRTMIN + 5, signal.SIGRTMAX),
]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Counts the signals it gets; with faultlens in a process group of its own, as a shell makes it."""
    home = {**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")}
    command = [*FAULTLENS, "run", "-q", "--", "python3", "-c", COUNTING]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=home, start_new_session=True)
    assert started.stdout and started.stdout.readline() == "ready\n"
    yield started
    started.kill()
    started.wait()


def counted(program: subprocess.Popen[str]) -> list[int]:
    program.send_signal(signal.SIGUSR2)
    output = program.communicate(timeout=30)[0]
    assert program.returncode == 0
    return sorted(int(word) for word in output.split())


def test_sent_to_faultlens_alone(program: subprocess.Popen[str]) -> None:
    """Schedulers do so, also with signals that are rarely used."""
    for number in SENT:
        program.send_signal(number)
    assert counted(program) == sorted(SENT)


def test_sent_to_the_job(program: subprocess.Popen[str]) -> None:
    """`kill %1` of a shell: the program is in the group, and so is faultlens."""
    for number in SENT:
        os.killpg(program.pid, number)
    assert counted(program) == sorted(SENT)


def test_sent_by_the_program_to_its_group(run) -> None:
    done = run(
        "import os, signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: seen.append(1))\n"
        "os.killpg(0, signal.SIGTERM)\n"
        "time.sleep(0.3)\n"
        "print(len(seen))\n",
        start_new_session=True,
    )
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_a_save_that_is_made_on_interrupt_is_finished(tmp_path: Path) -> None:
    command = [*FAULTLENS, "run", "-q", "--", "python3", PROGRAMS / "undisturbed" / "interrupted_save.py"]
    home = {**os.environ, "FAULTLENS_HOME": str(tmp_path)}
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=home, cwd=tmp_path, start_new_session=True
    )
    assert started.stdout and started.stdout.readline() == "training\n"
    os.killpg(started.pid, signal.SIGINT)
    assert "saved" in started.communicate(timeout=30)[0]
    assert started.returncode == 0


def test_the_terminal_is_gone(tmp_path: Path) -> None:
    """The kernel tells the leader of the session alone: `ssh -t host faultlens run …` and a line that breaks."""
    leader, terminal = pty.fork()
    if leader == 0:
        os.environ["FAULTLENS_HOME"] = str(tmp_path)
        os.execv(FAULTLENS[0], [*FAULTLENS, "run", "-q", "--", "sh", "-c", "echo ready; sleep 30"])
    assert b"ready" in os.read(terminal, 100)
    os.close(terminal)
    assert os.WTERMSIG(os.waitpid(leader, 0)[1]) == signal.SIGHUP


def test_the_end_of_children_is_ignored_by_the_caller(tmp_path: Path) -> None:
    """Then the kernel tells nobody of it, as long as that stays so."""
    command = [*FAULTLENS, "run", "-q", "--", "grep", "SigIgn", "/proc/self/status"]
    done = subprocess.run(
        command,
        env={**os.environ, "FAULTLENS_HOME": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert int(done.stdout.split()[1], 16) & 1 << (signal.SIGCHLD - 1)  # the program gets it as it was


def test_nobody_reads_what_faultlens_says(tmp_path: Path) -> None:
    """A worker crashes, which is told on stderr; the program goes on all the same."""
    reader, writer = os.pipe()
    os.close(reader)
    program = (
        "import ctypes, os, time\nif os.fork() == 0: ctypes.string_at(0)\nos.wait()\ntime.sleep(0.5)\nprint('done')"
    )
    done = subprocess.run(
        [*FAULTLENS, "run", "--", "python3", "-c", program],
        env={**os.environ, "FAULTLENS_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=writer,
        timeout=60,
    )
    os.close(writer)
    assert (done.returncode, done.stdout) == (0, b"done\n")
