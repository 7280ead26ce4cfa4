"""Saving in a forked process: training waits for the fork alone, and survives whatever happens in the saving code.

The fork is the snapshot: the writer sees the memory of that instant, whatever the training changes meanwhile. It reads
variables through arrays that were made before the fork, so that it need not compute, which would hang (TensorFlow's
threads are not in it)."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from faultlens.model_files.generations import Generation, generations
from faultlens.saving.errors import SaveError
from faultlens.saving.preflight import check_room, memory_left
from faultlens.saving.steps import Request, perform
from faultlens.system import own_process
from faultlens.text.sizes import in_words

TIME_LIMIT = 900.0
LONGEST_ANSWER = 1 << 16
_running: dict[Path, PendingSave] = {}


class PendingSave:
    """A save under way. If it fails, a warning says so, once; what was saved before is untouched."""

    def __init__(self, path: Path, pid: int, answers: int, seconds: float) -> None:
        self.path = path
        self.error: SaveError | None = None
        self.generation: Generation | None = None
        self.pid = pid
        self._seconds = seconds
        self._warnings: list[str] = []  # of the writer, which has nobody to tell
        self._thread = threading.Thread(target=self._watch, args=(answers,), name="faultlens-save", daemon=True)
        self._told = False
        self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> Generation | None:
        """Until it is done, for so many seconds at most. Raises SaveError if it failed, None if it is not done."""
        self._thread.join(seconds)
        if not self.done:
            return None
        self._tell_warnings()
        if self.error is not None:
            self._told = True
            raise self.error
        return self.generation

    def tell(self) -> None:
        """Warn, if it has failed and nobody was told."""
        if self.done:
            self._tell_warnings()
        if self.done and self.error is not None and not self._told:
            self._told = True
            warnings.warn(f"{self.error} The previous save stays.", RuntimeWarning, stacklevel=3)

    def _tell_warnings(self) -> None:
        said, self._warnings = self._warnings, []
        for text in said:
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def _watch(self, answers: int) -> None:
        answer = _read(answers, time.monotonic() + self._seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # it has nothing more to say, or is over its time
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:  # the program collects all its children
            status = 0
        self._conclude(answer, status)

    def _conclude(self, answer: dict[str, Any] | None, status: int) -> None:
        self._warnings = (answer or {}).get("warnings", [])
        if answer is not None and "problem" in answer:
            self.error = SaveError(answer["problem"], answer.get("advice", ""))
        elif answer is not None and "number" in answer:
            self.generation = next((one for one in generations(self.path) if one.number == answer["number"]), None)
        elif answer is not None:
            self.error = SaveError(
                f"{self.path} was not saved: the writing process took more than {self._seconds:g} s.",
                "Save without background=True, or raise time_limit.",
            )
        else:
            how = f"died by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "ended early"
            self.error = SaveError(
                f"{self.path} was not saved: the writing process {how}.",
                "Try without background=True under `faultlens run`, which tells why.",
            )


def in_background(wanted: Request, seconds: float = TIME_LIMIT) -> PendingSave | Generation:
    """Start it and return. With too little memory for a fork it is done here and now, and a warning says so."""
    wait_for(wanted.path)
    check_room(wanted.path, wanted.form)
    reason = _reason_against(wanted)
    if reason is not None:
        warnings.warn(f"saving {wanted.path.name} in this process, because {reason}", RuntimeWarning, stacklevel=3)
        return perform(wanted)
    wanted.form.values.hold(wanted.form.variables())
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads: see above
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _write_and_exit(wanted, writer)
    os.close(writer)
    wanted.form.values.release()
    pending = PendingSave(wanted.path, pid, reader, seconds)
    _running[wanted.path] = pending
    return pending


def wait_for(path: Path) -> None:
    """The previous save to this name comes first."""
    pending = _running.pop(path, None)
    if pending is not None:
        pending._thread.join()
        pending.tell()


def wait_for_all() -> None:
    for path in list(_running):
        wait_for(path)


atexit.register(wait_for_all)


def _reason_against(wanted: Request) -> str | None:
    if not hasattr(os, "fork"):
        return "this system cannot fork"
    elsewhere = {device for device in map(_device, wanted.form.variables()) if "TPU" in device or not _is_here(device)}
    if elsewhere:
        return f"variables are on {sorted(elsewhere)[0]}"
    size, left = wanted.form.size(), memory_left()
    if left is not None and left < size + wanted.form.extra_memory:
        return (
            f"what training changes meanwhile may need {in_words(size)} of memory a second time,"
            f" and {in_words(left)} are left"
        )
    return None


def _device(variable: Any) -> str:
    return str(getattr(getattr(variable, "_value", variable), "device", ""))


def _is_here(device: str) -> bool:
    return "/job:" not in device or "/job:localhost" in device


def _write_and_exit(wanted: Request, writer: int) -> None:
    """Never returns: nothing of the program may run twice."""
    try:
        _make_expendable()
        _running.clear()
        answer: dict[str, Any]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            try:
                answer = {"number": perform(wanted).number}
            except SaveError as error:
                answer = {"problem": error.problem, "advice": error.advice}
            except BaseException as error:
                answer = {"problem": f"{wanted.path} was not saved: {type(error).__name__}: {error}"[:1000]}
        answer["warnings"] = [str(each.message)[:1000] for each in said if each.category is RuntimeWarning][:10]
        os.write(writer, json.dumps(answer).encode()[:LONGEST_ANSWER])
    finally:
        os._exit(0)


def _make_expendable() -> None:
    """If memory runs out, the kernel shall take the writer and not the training."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a save that has begun is better ended than cut
    own_process.killed_first()
    with contextlib.suppress(OSError):
        os.nice(5)


def _read(descriptor: int, deadline: float) -> dict[str, Any] | None:
    """What the writer says; None if it ended without a word, an empty dict if it took too long."""
    parts = b""
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return {}
            part = os.read(descriptor, LONGEST_ANSWER)
            if not part:
                break
            parts += part
    finally:
        os.close(descriptor)
    try:
        answer = json.loads(parts)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
