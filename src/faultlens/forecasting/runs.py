"""Asks the server in the user's Python for measured runs, one after the other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.forecasting.subject import Function
from faultlens.inspection.siginfo import signal_name
from faultlens.sandbox.guest import guard
from faultlens.sandbox.guests import guest_command
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words

SERVER = Path(__file__).parent / "guest" / "server.py"
IMPORT_S = 300.0
MARGIN_S = 30.0
ENDING_S = 5.0
TAIL = 2000
# TensorFlow's chatter; and host memory is what is measured, so no GPU.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONDONTWRITEBYTECODE": "1"}


class Ran(NamedTuple):
    """What came of one run."""

    batch: int
    result: dict[str, Any]  # empty where it was stopped
    killed: str  # "memory", "time"; empty where it ended by itself
    highest: int  # bytes of anonymous memory it was seen with
    words: str = ""  # the error that ended it
    refused: bool = False  # the words are for the user as they are
    signal: str = ""  # that it died by
    at: str = ""  # what it was doing last


class Runs:
    """A Python with TensorFlow loaded, for as long as the `with` lasts."""

    def __init__(
        self, python: str, path: list[str], functions: Sequence[Function] = (), under: Sequence[str] = ()
    ) -> None:
        """`functions`: that will be asked for. `under`: a command that runs others."""
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="faultlens-forecast-")
        self._output = Path(self._folder.name) / "output"
        with open(self._output, "wb") as output:
            self._server = subprocess.Popen(
                [*under, *guest_command(python, SERVER, json.dumps(functions))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **QUIET},
            )
        self.python = python
        self.versions: dict[str, str] = {}
        self.import_seconds = 0.0

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, patience: float = 0.0) -> None:
        """`patience`: seconds to end by itself."""
        assert self._server.stdin is not None
        if patience:
            self._server.stdin.close()
        guard.end(self._server, patience)
        self._folder.cleanup()

    def wait_until_ready(self) -> None:
        ready = self._answer(IMPORT_S)
        if refused := ready.get("refused"):
            raise FaultlensError(one_line(refused, 400))
        if not ready.get("ready"):
            raise self._no_tensorflow(str(ready.get("problem") or ""))
        self.versions = ready["versions"]
        self.import_seconds = ready["seconds"]

    def _no_tensorflow(self, problem: str) -> FaultlensError:
        return FaultlensError(
            f"{self.python} cannot import TensorFlow and Keras: {one_line(problem or f'it {self._end()}', 300)}.",
            "Name another Python with --python, see `faultlens doctor`, or let `faultlens run -- "
            f"{self.python} -c 'import tensorflow'` say what it dies of.",
        )

    def _end(self) -> str:
        """Of the server, which does not answer."""
        status = guard.end(self._server, ENDING_S)
        if status == -signal.SIGTERM:  # ours
            return "did not answer in time"
        last = self._tail()
        said = f"; it had said: {last}" if last else ""
        if status == -signal.SIGKILL:
            return f"was killed (SIGKILL), most likely for want of memory{said}"
        return f"died by {signal_name(-status)}{said}" if status < 0 else f"ended with exit status {status}{said}"

    def run(self, request: dict[str, Any], memory: int, seconds: float) -> Ran:
        self._output.write_bytes(b"")
        whole = {**request, "memory": memory, "seconds": seconds, "path": self._path, "output": str(self._output)}
        assert self._server.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self._server.stdin.write(json.dumps(whole).encode() + b"\n")
            self._server.stdin.flush()
        answer = self._answer(seconds + MARGIN_S)
        if not answer:
            raise FaultlensError(f"The measuring process {self._end()}.", "Try it again.")
        ran = Ran(request["batch"], answer["result"], answer["killed"], answer["highest"], at=answer["at"])
        if "error" in ran.result:
            return ran._replace(result={}, words=self._failure(ran.result), refused=bool(ran.result["ours"]))
        return ran if ran.result or ran.killed else self._death(ran, answer["status"])

    def _failure(self, result: dict[str, Any]) -> str:
        words = one_line(result["words"], 400)
        last = self._tail() if result["ended"] else ""
        if result["ours"]:
            return f"{words} It had said: {last}" if last else words
        place = f" ({result['line']})" if result["line"] else ""
        return f"{one_line(result['during'] or 'The run', 100)} failed{place}: {result['error']}: {words}"

    def _death(self, ran: Ran, status: int) -> Ran:
        last = self._tail()
        said = f" It had said: {last}" if last else ""
        if not os.WIFSIGNALED(status):
            return ran._replace(words=f"The model ended its process, with exit status {os.WEXITSTATUS(status)}.{said}")
        name = signal_name(os.WTERMSIG(status))
        why = f", at {in_words(ran.highest)}, most likely for want of memory" if name == "SIGKILL" else ""
        return ran._replace(words=f"The process with the model was ended by {name}{why}.{said}", signal=name)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], seconds)[0]:
            return {}
        line = self._server.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer

    def _tail(self) -> str:
        """The last line that was printed."""
        try:
            text = self._output.read_bytes()[-TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return one_line(lines[-1], 300) if lines else ""
