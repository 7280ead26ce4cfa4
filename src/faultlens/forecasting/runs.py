"""Asks the server in the user's Python for measured runs, one after the other."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.safe_text import one_line
from faultlens.sandbox import guard

SERVER = Path(__file__).parent / "measured" / "server.py"
IMPORT_S = 300.0
MARGIN_S = 30.0
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


class Runs:
    """A Python with TensorFlow loaded, for as long as the `with` lasts."""

    def __init__(self, python: str, path: list[str]) -> None:
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="faultlens-forecast-")
        self._output = Path(self._folder.name) / "output"
        with open(self._output, "wb") as output:
            self._server = subprocess.Popen(
                [python, "-B", str(SERVER)],
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
        guard.end(self._server)
        self._folder.cleanup()

    def wait_until_ready(self) -> None:
        ready = self._answer(IMPORT_S)
        if not ready.get("ready"):
            problem = one_line(str(ready.get("problem") or self._tail() or "it ended without a word"), 300)
            raise FaultlensError(
                f"{self.python} cannot import TensorFlow and Keras: {problem}.",
                "Name another Python with --python, or see `faultlens doctor`.",
            )
        self.versions = ready["versions"]
        self.import_seconds = ready["seconds"]

    def run(self, request: dict[str, Any], memory: int, seconds: float) -> Ran:
        self._output.write_bytes(b"")
        whole = {**request, "memory": memory, "seconds": seconds, "path": self._path, "output": str(self._output)}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(whole).encode() + b"\n")
        self._server.stdin.flush()
        answer = self._answer(seconds + MARGIN_S)
        if not answer:
            raise FaultlensError(f"The measuring process ended: {self._tail() or 'without a word'}.", "Try it again.")
        result = answer["result"]
        words, refused = "", False
        if "error" in result:
            refused = bool(result["ours"])
            words = result["words"] if refused else f"{result['error']}: {result['words']}"
            result = {}
        elif not result and not answer["killed"]:
            status = answer["status"]
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
            words = f"it died ({how}): {self._tail()}"
        return Ran(request["batch"], result, answer["killed"], answer["highest"], words, refused)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], seconds)[0]:
            return {}
        line = self._server.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer

    def _tail(self) -> str:
        try:
            text = self._output.read_bytes()[-TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return one_line(lines[-1], 300) if lines else ""
