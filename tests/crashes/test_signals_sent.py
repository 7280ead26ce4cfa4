"""Signals reach the program exactly once, whoever they were sent to."""

from __future__ import annotations

import os
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
