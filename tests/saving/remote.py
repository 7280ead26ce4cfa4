"""An object that lives in a process of its own, and may die there."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class GoneError(RuntimeError):
    """It died, or took too long."""


class Remote:
    """`Remote("module", "Class", argument)` makes the object; `ask("method", …)` calls it."""

    def __init__(self, module: str, name: str, *arguments: str, python: str = sys.executable) -> None:
        ours, theirs = socket.socketpair()
        code = (
            f"import sys; sys.path.insert(0, {str(HERE)!r}); import remote, {module};"
            f"remote.serve({module}.{name}, *sys.argv[1:])"
        )
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [python, "-c", code, str(theirs.fileno()), *arguments], env=environment, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._connection = Connection(ours.detach())

    def ask(self, seconds: float, what: str, *arguments: Any) -> Any:
        try:
            self._connection.send((what, arguments))
            if not self._connection.poll(seconds):
                self.process.kill()
                raise GoneError(f"no answer to {what} after {seconds:g} s")
            answer = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise GoneError(f"ended with {self.process.wait()}") from error
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self._connection.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serve(make: Callable[..., Any], descriptor: str, *arguments: str) -> None:
    """Answers until the other side hangs up."""
    connection = Connection(int(descriptor))
    served = make(*arguments)
    while True:
        try:
            what, given = connection.recv()
        except EOFError:
            os._exit(0)  # without TensorFlow's farewells
        try:
            answer = getattr(served, what)(*given)
        except Exception as error:
            answer = sendable(error)
        connection.send(answer)


def sendable(error: BaseException) -> BaseException:
    """Some exceptions cannot be pickled, or worse, cannot be read back."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(repr(error))
    return error
