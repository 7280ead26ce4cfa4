"""How a program ends, alone and under `faultlens run`: its status, what it wrote, and what it left running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

UNDER = [sys.executable, "-m", "faultlens", "run", "--quiet", "--no-save", "--"]
PATIENCE = 2.0  # seconds for what was started to end after the program
HUNG = 1000  # no status of a process


@dataclass(frozen=True)
class Ending:
    status: int  # as subprocess has it: negative for a signal; HUNG
    output: bytes
    errors: bytes
    left: int  # processes of its session that outlived it

    def __str__(self) -> str:
        how = "hung" if self.status == HUNG else f"status {self.status}"
        return f"{how}, {self.left} left running\n--- output\n{_text(self.output)}--- errors\n{_text(self.errors)}"


def ending(
    command: Sequence[str | Path],
    folder: Path,
    under: bool = False,
    seconds: float = 30,
    environment: Mapping[str, str] | None = None,
    meanwhile: Callable[[subprocess.Popen[bytes], Path], None] | None = None,
) -> Ending:
    """Runs it in a session of its own, so that nothing it does reaches others, and nothing of it is missed."""
    process = subprocess.Popen(
        [*(UNDER if under else []), *command],
        cwd=folder,
        env={**os.environ, "FAULTLENS_HOME": str(folder / "home"), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=in_one_state,
    )
    if meanwhile:
        meanwhile(process, folder)
    try:
        output, errors = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        _end(process.pid)
        process.kill()
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:  # something outside of the session holds the pipe
            output, errors = b"", b"the pipe stayed open\n"
        status = HUNG
    return Ending(status, output, errors, _left(process.pid))


def differences(plain: Ending, under: Ending) -> list[str]:
    """What is not the same, in words."""
    return [name for name in ("status", "output", "errors", "left") if getattr(plain, name) != getattr(under, name)]


class _Stack(ctypes.Structure):
    _fields_ = (("ss_sp", ctypes.c_void_p), ("ss_flags", ctypes.c_int), ("ss_size", ctypes.c_size_t))


_LIBC = ctypes.CDLL(None)
_NO_STACK = _Stack(None, 2, 0)  # SS_DISABLE


def in_one_state() -> None:
    """What a program inherits: no core file, no signal that a shell ignores for jobs in the background, and no flag
    of an alternate stack that some ancestor once had."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _LIBC.sigaltstack(ctypes.byref(_NO_STACK), None)


def _left(session: int) -> int:
    """Processes that do not end by themselves; they are ended."""
    deadline = time.monotonic() + PATIENCE
    while (members := _members(session)) and time.monotonic() < deadline:
        time.sleep(0.01)
    _end(session)
    return len(members)


def _end(session: int) -> None:
    for pid in _members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _members(session: int) -> list[int]:
    """The processes of the session; those that have ended and wait for their parent are none."""
    members = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
            members.append(int(name))
    return members


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
