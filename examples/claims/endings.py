"""What the programs in this folder share: a job is run in a process of its own, and its end is told in words.

The job is forked from a process that has imported TensorFlow but has run no op, which is safe and saves the import.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

CANNOT_SHOW = 77  # the exit status that says "skipped" to automake, too
CLONE_NEWNS = 0x00020000
MS_PRIVATE_RECURSIVE = 1 << 18 | 1 << 14


@dataclass(frozen=True)
class Ending:
    how: str  # "finished", "SIGSEGV", "ValueError", "exit 3", "still running"
    text: str  # what it wrote to stdout and stderr


def cannot_show(reason: str) -> NoReturn:
    """Ends the program: this machine lacks what the claim needs."""
    print("cannot be shown here:", reason, flush=True)
    sys.exit(CANNOT_SHOW)


def ending(job: Callable[[], object], *, seconds: float = 60, watch: Callable[[int], object] | None = None) -> Ending:
    """Runs the job in a forked process, for so many seconds at most; watch(pid) may look at it or kill it."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as raised:
        pid = os.fork()
        if pid == 0:
            os.dup2(text.fileno(), 1)
            os.dup2(text.fileno(), 2)
            try:
                job()
            except Exception as error:
                traceback.print_exc()
                os.write(raised.fileno(), type(error).__name__.encode())
                sys.exit(1)
            sys.exit(0)  # through the whole interpreter, because some crashes wait for its end
        if watch:
            watch(pid)
        status = _wait(pid, seconds)
        text.seek(0)
        raised.seek(0)
        return Ending(_words(status, raised.read().decode()), text.read().decode(errors="replace"))


def ending_of(command: list[str], *, seconds: float = 60, **environment: str) -> Ending:
    """The same for a fresh program, with these variables added to its environment."""
    # "env" adds them behind whatever tool watches this program by a preloaded library of its own.
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), *command]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return Ending("still running", (late.output or b"").decode(errors="replace"))
    text = done.stdout.decode(errors="replace")
    status = -done.returncode if done.returncode < 0 else done.returncode << 8
    lines = [line for line in text.splitlines() if line[:1].isalpha() and "Error" in line.split(":")[0]]
    raised = lines[-1].split(":")[0].split(".")[-1] if "Traceback (most recent call last)" in text and lines else ""
    return Ending(_words(status, raised if done.returncode == 1 else ""), text)


def small_disk(megabytes: int) -> Path:
    """A new file system of this size, seen by this process only."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = Path(tempfile.mkdtemp(dir="."))
    if (
        libc.unshare(CLONE_NEWNS)
        or libc.mount(b"none", b"/", None, MS_PRIVATE_RECURSIVE, None)
        or libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={megabytes}m".encode())
    ):
        raise PermissionError(ctypes.get_errno(), "may not mount a file system")
    return folder


def need_small_disks() -> None:
    if ending(lambda: small_disk(1)).how != "finished":
        cannot_show("may not mount a file system")


def library(name: str) -> str:
    """The path of a system library, found by the loader's own cache."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        if line.split()[0] == name and "x86-64" in line:
            return line.split()[-1]
    cannot_show(f"{name} is not installed")


def _wait(pid: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _words(status: int | None, raised: str) -> str:
    if status is None:
        return "still running"
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return raised or ("finished" if status == 0 else f"exit {os.WEXITSTATUS(status)}")
