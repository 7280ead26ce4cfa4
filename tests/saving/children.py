"""Forked children that do one thing and tell how it went, or die of it."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import namespaces
from remote import sendable

SIGNALLED = 128
LIMIT = 60.0  # seconds for one child
VERBOSE = "SAVING_VERBOSE"  # in the environment: children may print


@dataclass(frozen=True)
class Ending:
    status: int  # negative: a signal
    seconds: float
    answer: Any  # None if it died before

    def undisturbed(self) -> Any:
        """The answer of a child that nothing should have happened to."""
        if self.status:
            raise RuntimeError(f"a child that nobody disturbed ended with {self.status}")
        return self.answer


class Child:
    """Begins at once. What it raises is raised again by `ended`. As `number_two` it has the number 2 in a name space of
    its own, as programs in containers have the same number after every start."""

    def __init__(self, what: Callable[[], Any], number_two: bool = False) -> None:
        self._answers, answering = os.pipe()
        self._start = time.monotonic()
        self.number = os.fork()
        if self.number == 0:
            os.close(self._answers)
            if number_two:
                _become_number_two(answering)
            _answer_and_exit(what, answering)
        os.close(answering)

    def wait_until_stopped(self) -> None:
        while not os.WIFSTOPPED(os.waitpid(self.number, os.WUNTRACED | os.WNOHANG)[1]):
            if time.monotonic() - self._start > LIMIT:
                self.signal(signal.SIGKILL)
                raise TimeoutError("the call at which it should have stopped never came")
            time.sleep(0.001)

    def signal(self, number: int) -> None:
        os.kill(self.number, number)

    def ended(self) -> Ending:
        data = b""
        while select.select([self._answers], [], [], max(self._start + LIMIT - time.monotonic(), 0))[0]:
            more = os.read(self._answers, 1 << 16)
            if not more:
                break
            data += more
        else:
            self.signal(signal.SIGKILL)
        os.close(self._answers)
        _, status = os.waitpid(self.number, 0)
        answer = pickle.loads(data) if data else None
        if isinstance(answer, BaseException):
            raise answer
        code = os.waitstatus_to_exitcode(status)
        return Ending(SIGNALLED - code if code > SIGNALLED else code, time.monotonic() - self._start, answer)


def error_of(what: Callable[[], object]) -> str:
    """Its name and its words; empty if there was none."""
    try:
        what()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _become_number_two(answering: int) -> None:
    """Returns in a grandchild. The processes above end as it ends."""
    try:
        namespaces.unshare(namespaces.NUMBERS)
    except OSError as error:
        os.write(answering, pickle.dumps(error))
        os._exit(0)
    for _ in range(2):  # number one, and number two
        process = os.fork()
        if process:
            os.close(answering)
            _, status = os.waitpid(process, 0)
            if not os.WIFSIGNALED(status):
                os._exit(os.WEXITSTATUS(status))
            os.kill(os.getpid(), os.WTERMSIG(status))
            os._exit(SIGNALLED + os.WTERMSIG(status))  # number one cannot be killed from within


def _answer_and_exit(what: Callable[[], Any], answering: int) -> None:
    """Never returns: nothing of the parent may run twice."""
    try:
        if VERBOSE not in os.environ:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        os.write(answering, pickle.dumps(what()))
    except BaseException as error:
        os.write(answering, pickle.dumps(sendable(error)))
    finally:
        os._exit(0)
