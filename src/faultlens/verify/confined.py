"""Asks the Python of the user's programs about a save: a process of its own, confined, limited, and always ended."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from faultlens.agent import LIBRARY
from faultlens.inspection.siginfo import signal_name
from faultlens.records.crash import Record
from faultlens.sandbox.guest import confinement, guard
from faultlens.sandbox.guests import guest_command, inherited
from faultlens.system.loader_variables import preload_entries
from faultlens.text.safe import last_lines, one_line

CHILD = Path(__file__).parent / "guest" / "read.py"
MAX_ANSWER = 64 << 20
CHUNK = 1 << 16
DYING_S = 3.0  # of a process that has closed its answers
STANDSTILL_S = 20.0  # on one variable, if it is small
RATE = 20 << 20  # bytes a second that even a slow disk gives
SETTINGS = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",  # a training may be using them
    "HDF5_PLUGIN_PRELOAD": "::",  # no code is loaded because a file asks for it
    "HDF5_USE_FILE_LOCKING": "FALSE",
}
FATAL = frozenset({"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP"})


class Limits(NamedTuple):
    seconds: float
    memory: int


class Told(Record, frozen=True):
    """What the child says at the end. It may have been taken over by what it read: nothing else is believed."""

    damages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    not_finite: tuple[tuple[str, int], ...] = ()  # variables, and how many values
    not_finite_variables: int = 0
    places: dict[str, tuple[int, int]] = {}  # noqa: RUF012 (msgspec copies it)
    variables: int = 0
    size: int = 0
    weights_only: bool = False
    raised: str = ""  # the exception that ended it
    message: str = ""
    errno: int | None = None


class _Line(Record, frozen=True):
    at: str = ""
    size: int = 0
    done: Told | None = None


class Answer(NamedTuple):
    """What came of it."""

    told: Told | None = None
    died: str = ""  # "SIGSEGV at /layers/dense/vars/0: last words"
    crashed: bool = False  # it died of what it read
    endless: str = ""  # where it stood still
    late: bool = False  # it was at work when its time was over


def ask(python: str, request: dict[str, Any], limits: Limits, may_stand: bool = False) -> Answer:
    """`may_stand`: it gives no sign of progress, and need not."""
    with tempfile.TemporaryDirectory(prefix="faultlens-verify-", ignore_cleanup_errors=True) as folder:
        bounds: dict[str, Any] = {"parent": os.getpid(), "folder": folder, "memory": limits.memory}
        bounds["means"] = confinement.available()
        question, said = Path(folder, "request.json"), Path(folder, "stderr")
        question.write_text(json.dumps({**request, **bounds}))
        with said.open("wb") as stderr:
            try:
                child = subprocess.Popen(
                    guest_command(python, CHILD, str(question)),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    cwd=folder,
                    env=_variables(folder),
                    start_new_session=True,
                )
            except OSError as error:
                return Answer(died=f"{python} cannot be run ({error.strerror})")
        try:
            return _listen(child, limits.seconds, may_stand, said)
        finally:
            guard.end(child)  # and what it may have started
            assert child.stdout is not None
            child.stdout.close()


def _variables(folder: str) -> dict[str, str]:
    kept = inherited(os.environ)
    if "FAULTLENS_AGENT" in os.environ:  # we run under `faultlens run`, whose program this is not
        kept["LD_PRELOAD"] = ":".join(
            each for each in preload_entries(kept.get("LD_PRELOAD", "")) if LIBRARY.name not in each
        )
    return {**kept, **SETTINGS, "TMPDIR": folder}


def _listen(child: subprocess.Popen[bytes], seconds: float, may_stand: bool, said: Path) -> Answer:
    assert child.stdout is not None
    end = patience = time.monotonic() + seconds
    at: str | None = None  # until it says that it begins, its death tells of Python, and not of the save
    waiting, heard = bytearray(), 0
    while heard < MAX_ANSWER:
        deadline = end if may_stand else min(end, patience)
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
            return Answer(late=True) if deadline == end else Answer(endless=one_line(at or "", 120) or "its header")
        part = os.read(child.stdout.fileno(), CHUNK)
        if not part:
            break
        heard += len(part)
        waiting += part
        if b"\n" not in part:
            continue
        *lines, waiting = waiting.split(b"\n")
        for raw in lines:
            try:
                line = msgspec.json.decode(raw, type=_Line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                return Answer(died="it gave no sensible answer", crashed=at is not None)
            if line.done is not None:
                return Answer(told=line.done)
            at = line.at
            patience = time.monotonic() + min(STANDSTILL_S, seconds / 2) + max(line.size, 0) / RATE
    status = guard.end(child, DYING_S if heard < MAX_ANSWER else 0.0)
    return _death(status, at, said)


def _death(status: int, at: str | None, said: Path) -> Answer:
    how = signal_name(-status) if status < 0 else f"exit status {status}"
    with said.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - CHUNK, 0))
        words = last_lines(file.read().decode("utf-8", "replace"), 1, 200)
    where = f" at {one_line(at, 120)}" if at else ""
    told = f"{how}{where}" + (f": {words[0]}" if words else "")
    return Answer(died=told, crashed=at is not None and how in FATAL)
