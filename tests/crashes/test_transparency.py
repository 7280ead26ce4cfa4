"""Under faultlens a program behaves as it does alone: terminal, signals, output, surroundings."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

FAULTLENS = [sys.executable, "-m", "faultlens", "run", "--no-save", "--"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 127, 139, 255])
def test_exit_codes(run, code: int) -> None:
    assert run(f"import os; os._exit({code})").returncode == code


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGTERM", "SIGINT", "SIGKILL", "SIGUSR1", "SIGPIPE", "SIGHUP"])
def test_terminating_signals(run, name: str) -> None:
    code = (
        "import os, signal\n"
        "for s in (signal.SIGINT, signal.SIGPIPE, signal.SIGHUP): signal.signal(s, signal.SIG_DFL)\n"
        f"os.kill(os.getpid(), signal.{name})"
    )
    assert run(code).returncode == -signal.Signals[name]


def test_stdin_is_the_programs(run) -> None:
    done = run("import sys; print(sys.stdin.read()[::-1])", input=b"hello")
    assert done.stdout == "olleh\n"


def test_order_of_output_on_one_pipe(tmp_path: Path) -> None:
    code = "import os\nfor i in range(500):\n    os.write(1, b'out %d\\n' % i); os.write(2, b'err %d\\n' % i)\n"
    done = subprocess.run(
        [*FAULTLENS, sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path
    )
    assert done.stdout == b"".join(b"out %d\nerr %d\n" % (i, i) for i in range(500))


def test_binary_output_is_untouched(tmp_path: Path) -> None:
    code = "import os\nfor i in range(64): os.write(1, bytes(range(256)) * 512)"
    done = subprocess.run([*FAULTLENS, sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path)
    assert done.stdout == bytes(range(256)) * 512 * 64


SURROUNDINGS = """
import os, resource, signal, sys
print(os.getcwd(), os.getpgrp() == os.getppid() or os.getpgrp(), os.umask(0o22), sorted(os.listdir('/proc/self/fd')))
print([signal.getsignal(s) for s in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGSEGV)])
print([l for l in open('/proc/self/status') if l.startswith(('SigBlk', 'SigIgn'))])
print({k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'FAULTLENS_AGENT')} == OUTER)
print(resource.getrlimit(resource.RLIMIT_CORE), os.nice(0), os.isatty(0), os.isatty(1))
"""


def test_surroundings_are_the_same(tmp_path: Path) -> None:
    outer = {**os.environ, "TOKEN": "x"}
    code = SURROUNDINGS.replace("OUTER", repr(outer))
    plain = [sys.executable, "-c", code]
    alone, under = (
        subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=outer, stdin=subprocess.DEVNULL)
        for command in (plain, [*FAULTLENS, *plain])
    )
    assert under.stderr == alone.stderr == ""
    assert under.stdout == alone.stdout


# --------------------------------------------------------------------------------------------- a terminal


class Terminal:
    """A session on a pseudo-terminal, as a person at a shell has it."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            # What runs the tests may ignore these: nohup, a shell's background jobs.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(cwd)
            os.execvp(command[0], list(command))
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.text = ""

    def read_until(self, pattern: str, seconds: float = 20) -> str:
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.text!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    assert re.search(pattern, self.text), f"ended without {pattern!r}: {self.text!r}"
        return self.text

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait(self) -> int:
        while True:
            try:
                if not os.read(self.master, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_terminal_is_a_terminal(tmp_path: Path) -> None:
    code = "import os, sys; print([os.isatty(i) for i in range(3)], os.get_terminal_size()); print(input('name? '))"
    terminal = Terminal([*FAULTLENS, sys.executable, "-c", code], tmp_path)
    terminal.read_until(r"\[True, True, True\].*columns=100, lines=40")
    terminal.read_until(r"name\? ")
    terminal.type("Ada\n")
    terminal.read_until(r"Ada\r\nAda\r\n")
    assert terminal.wait() == 0


def test_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "try:\n"
        "    print('waiting', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted once', flush=True); time.sleep(0.3); raise SystemExit(5)\n"
    )
    terminal = Terminal([*FAULTLENS, sys.executable, "-c", code], tmp_path)
    terminal.read_until("waiting")
    terminal.type("\x03")
    terminal.read_until("interrupted once")
    assert terminal.wait() == 5


def test_ctrl_z_and_back(tmp_path: Path) -> None:
    code = "import time; print('working', flush=True); time.sleep(0.5); input(); print('resumed well')"
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    terminal.type("PS1='$ '\n")
    terminal.type(" ".join([*FAULTLENS, sys.executable, "-c", f'"{code}"']) + "\n")
    terminal.read_until("[\r\n]working\r\n")
    terminal.type("\x1a")
    terminal.read_until("Stopped")
    terminal.type("jobs\n")
    terminal.read_until(r"\[1\]\+ +Stopped")
    terminal.type("fg\n")
    time.sleep(0.5)
    terminal.type("\n")
    terminal.read_until("[\r\n]resumed well")
    terminal.type("exit 3\n")
    assert terminal.wait() == 3


def test_crash_report_in_a_terminal_has_colour_and_the_programs_words(tmp_path: Path, native: Path) -> None:
    code = f"import ctypes; ctypes.CDLL({str(native)!r}).abort_with_check()"
    terminal = Terminal([*FAULTLENS, sys.executable, "-c", code], tmp_path)
    text = terminal.read_until("SIGABRT(.|\n)*memory")
    assert "Check failed: rank == 2 (3 vs. 2)" in text
    assert "\x1b[" in text
    assert terminal.wait() == -signal.SIGABRT
