"""The scan's end of the line to a warm Python, which forks the processes that decoders run in."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from faultlens.errors import FaultlensError
from faultlens.inspection import numbering
from faultlens.inspection.siginfo import signal_name
from faultlens.sandbox.guest import board as layout
from faultlens.sandbox.guest import confinement, guard
from faultlens.sandbox.guests import guest_command
from faultlens.text.safe import last_lines, one_line

IMPORT_SECONDS = 120.0
ENDING_SECONDS = 15.0  # that a killed process may take
CHUNK = 1 << 16
F_SEAL_FUTURE_WRITE = 0x10  # what is mapped may still be written, through descriptors nothing more
ADVICE = "Name the Python of your programs with --python."


class GoneError(Exception):
    """The server has died, or does not answer."""


class Link:
    def __init__(
        self,
        python: str,
        request: Mapping[str, Any],
        data: int,
        environment: Mapping[str, str],
        tick: Callable[[], None],
        server: Path,
        said: Path,
    ) -> None:
        """`data`: the file that items are written to. `tick`: called again and again until it is ready. `said`: where
        its stderr goes until then."""
        self._heard = b""
        self._python, self._said = python, said
        board = os.memfd_create("faultlens-board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(board, layout.SIZE)
        self.board = layout.Board(board)
        go, self._go = os.pipe()
        self._bell, bell = os.pipe()
        for end in (self._go, self._bell, bell):
            os.set_blocking(end, False)
        readable = os.open(f"/proc/self/fd/{data}", os.O_RDONLY | os.O_CLOEXEC)
        theirs = {"go": go, "bell": bell, "data": readable, "board": board}
        self.means = confinement.available()
        settings = {**request, **theirs, "means": self.means}
        try:
            with said.open("wb") as stderr:
                self._server = subprocess.Popen(
                    guest_command(python, server, json.dumps(settings)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    bufsize=0,  # what was read ahead would not be seen by select()
                    env=environment,
                    start_new_session=True,
                    pass_fds=tuple(theirs.values()),
                )
            self.ready = self._await_import(tick)
            self.pid = numbering.only_child(self._server.pid)  # of the server itself, which has a guard
            with contextlib.suppress(OSError):  # a kernel before 5.1
                fcntl.fcntl(board, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise FaultlensError(f"Cannot run {python}: {error.strerror}.", ADVICE) from error
            raise
        finally:
            for end in theirs.values():
                os.close(end)

    def _await_import(self, tick: Callable[[], None]) -> dict[str, Any]:
        """What the server says when it is ready."""
        deadline = time.monotonic() + IMPORT_SECONDS
        try:
            while (answer := self.answer(1.0)) is None:
                tick()
                if time.monotonic() > deadline:
                    raise FaultlensError(f"{self._python} took more than {IMPORT_SECONDS:g} s to import TensorFlow.")
        except GoneError:
            status = self._server.wait()
            how = f"died by {signal_name(-status)}" if status < 0 else f"ended with exit status {status}"
            advice = f"Try: faultlens run -- {self._python} -c 'import tensorflow'"
            why = f": {words[-1].rstrip('.')}" if (words := self._last_words()) else ""
            raise FaultlensError(f"{self._python} {how} when it was to import TensorFlow{why}.", advice) from None
        if not answer.get("ready"):
            why = one_line(str(answer.get("words")), 200)
            raise FaultlensError(f"{self._python} cannot import TensorFlow: {why}.", ADVICE)
        return answer

    def _last_words(self) -> list[str]:
        with contextlib.suppress(OSError), self._said.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - CHUNK, 0))
            return last_lines(file.read(CHUNK).decode("utf-8", "replace"), 1, 200)
        return []

    def fork(self) -> int:
        """The number of a new process, as it calls itself, which is nobody else's until its status is told."""
        assert self._server.stdin is not None
        words = self.board.words
        words[layout.READY] = words[layout.SAID] = 0
        words[layout.DONE] = words[layout.BATCH]
        try:
            self._server.stdin.write(b"\n")
        except BrokenPipeError as error:
            raise GoneError from error
        deadline = time.monotonic() + ENDING_SECONDS
        while (answer := self.answer(1.0)) is None:
            if time.monotonic() > deadline:
                raise GoneError
        return int(answer["pid"])

    def go(self) -> None:
        """There is a batch to work on."""
        with contextlib.suppress(BlockingIOError):  # rung often enough
            os.write(self._go, b".")

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """What the server says; None when it says nothing in time, or the bell rings before."""
        assert self._server.stdout is not None
        answers = self._server.stdout.fileno()
        if b"\n" not in self._heard:
            ready = select.select([answers, self._bell], [], [], seconds)[0]
            if self._bell in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._bell, CHUNK)
            if answers in ready:
                part = os.read(answers, CHUNK)
                if not part:
                    raise GoneError
                self._heard += part
        line, found, rest = self._heard.partition(b"\n")
        if not found:
            return None
        self._heard = rest
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """With the server ends what is below it."""
        if server := getattr(self, "_server", None):
            server.stdin.close()
            guard.end(server, ENDING_SECONDS)
            server.stdout.close()
        os.close(self._go)
        os.close(self._bell)
        self.board.close()
