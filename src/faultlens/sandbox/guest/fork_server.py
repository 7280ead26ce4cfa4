"""Runs in the Python of the user's programs: imports TensorFlow once, then forks processes that try items.

Needs nothing but the standard library, from Python 3.9 on. A line on stdin asks for a process; answers are one JSON
object a line: {"ready": …} at first, {"pid": …}, and {"status": …} when it has ended, with all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
from typing import Any, Callable

from . import board, confinement, guard, limits, offspring, tasks

MAX_FILE = 2 << 30
MAX_WORDS, MAX_NAME = 400, 100
BROKEN = "it closed descriptors that are not its own"
libc = ctypes.CDLL(None)


# ------------------------------------------------------------------------------------------ the server


class Server:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.means = confinement.Means(*request["means"])
        self.limit = tasks.limit_here()  # before it loses sight of other processes
        guard.enter(self.means, [os.path.dirname(request["folder"])], serves=True)
        self.board = board.Board(request["board"])
        os.close(request["board"])
        self.answers = os.dup(1)
        point_at(os.devnull, 1, os.O_WRONLY)
        self.child = 0
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)

    def answer(self, **what: Any) -> None:
        os.write(self.answers, json.dumps(what).encode() + b"\n")

    def prepare(self) -> bool:
        offspring.adopt()
        confinement.filter_for_children(self.means)
        limits.no_core_file()
        limits.at_most_written(MAX_FILE)
        try:
            told = self.load()
        except BaseException as error:
            self.answer(ready=False, words=words(error))
            return False
        point_at(os.devnull, 2, os.O_WRONLY)  # what was said before tells why it could not begin
        gc.freeze()  # or every child would copy the memory of all modules at its first collection
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        self.answer(ready=True, **told)
        return True

    def load(self) -> dict[str, Any]:
        """What all children are to have at hand; returns what there is to say of it."""
        importlib.import_module("tensorflow")
        return {}

    def serve(self) -> bool:
        """True in a child that is to begin its work; False at the end."""
        while True:
            ready = select.select([0, self.woken], [], [])[0]
            if self.woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.woken, 4096)
                self.reap()
            if 0 in ready:
                if not os.read(0, 1):
                    self.end_all()
                    return False
                if self.fork():
                    return True

    def fork(self) -> bool:
        shutil.rmtree(self.request["folder"], ignore_errors=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.request["folder"], 0o700)
        server = os.getpid()
        pid = os.fork()
        if pid:
            self.child = pid
            self.answer(pid=pid)
            return False
        limits.die_with(server)
        return True

    def reap(self) -> None:
        """Those that were adopted go quietly; with the child, all that it started ends."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid == self.child:
                    self.answer(status=self.end_all())
                    return
                os.waitpid(ended.si_pid, 0)

    def end_all(self) -> int:
        """The wait status of the child."""
        child, self.child = self.child, 0
        status: int = offspring.end_all(child)
        return status


def point_at(path: str, descriptor: int, flags: int) -> None:
    opened = os.open(path, flags)
    os.dup2(opened, descriptor)
    os.close(opened)


# ------------------------------------------------------------------------------------------- the child


class Child:
    name = ""  # of the verb, for whoever lists processes

    def __init__(self, server: Server) -> None:
        self.server = server
        self.request = server.request
        self.board = server.board
        self.words = server.board.words
        self.pid = os.getpid()
        for descriptor in (server.answers, server.woken, server.wake):
            os.close(descriptor)
        data = os.fstat(self.request["data"])
        self.data = data.st_dev, data.st_ino

    def settle(self) -> None:
        """A session and a folder of its own; nothing to read, and nowhere else to write."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(self.request["folder"])
        for descriptor, flags in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
            point_at(os.devnull, descriptor, flags)
        limits.killed_first()
        tasks.at_most(self.server.limit)
        writable = [self.request["folder"], *self.request.get("writable", ())]
        confinement.confine(self.server.means, writable)
        sys.argv[:] = [self.name]

    def begin(self) -> None:
        try:
            self.settle()
            self.get_ready()
        except BaseException as error:
            self.board.say(words(error))
            self.words[board.READY] = board.FAILED
            os._exit(1)
        self.only_the_child()
        self.words[board.READY] = self.pid
        self.ring()

    def get_ready(self) -> None:
        """Before the first item."""

    def only_the_child(self) -> None:
        """A decoder may fork: the copy would go on here."""
        if os.getpid() != self.pid:
            os._exit(0)

    def ring(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self.request["bell"], b".")

    def work(self) -> None:
        words = self.words
        while True:
            while words[board.BATCH] == words[board.DONE]:
                if not os.read(self.request["go"], 64):
                    return
            for index in range(words[board.FIRST], words[board.COUNT]):
                self.try_item(index)
            words[board.DONE] = words[board.BATCH]
            self.ring()

    def try_item(self, index: int) -> None:
        raise NotImplementedError

    def count(self) -> None:
        self.words[board.TRIED] += 1

    def is_whole(self) -> bool:
        try:
            data = os.fstat(self.request["data"])
            return (data.st_dev, data.st_ino) == self.data
        except OSError:
            return False


def words(error: BaseException) -> str:
    """ "ValueError: the first line of its message"."""
    try:
        lines = str(error)[: 10 * MAX_WORDS].split("\n")
    except BaseException:
        lines = []
    first = next((line.strip() for line in lines if line.strip()), "")
    name = type(error).__name__[:MAX_NAME]
    return f"{name}: {first[:MAX_WORDS]}" if first else name


def run(server: Server, child: Callable[[Server], Child]) -> None:
    """Never returns."""
    if server.prepare() and server.serve():
        forked = child(server)
        forked.begin()
        try:
            forked.work()
        finally:
            os._exit(1)
    os._exit(0)
