"""Runs in the Python of the user's programs: imports TensorFlow once, then forks processes that try items.

Needs nothing but the standard library, from Python 3.9 on. A line on stdin asks for a process; answers are one JSON
object a line: {"ready": …} at first, {"pid": …}, and {"status": …} when it has ended, with all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
from typing import Any

PACKAGE = "faultlens_sandbox"
MAX_FILE = 2 << 30
BROKEN = "it closed descriptors that are not its own"
libc = ctypes.CDLL(None)


def sandbox(folder: str, name: str) -> Any:
    """A module of faultlens' sandbox, a package under a name of its own."""
    if PACKAGE not in sys.modules:
        start = os.path.join(folder, "__init__.py")
        spec = importlib.util.spec_from_file_location(PACKAGE, start, submodule_search_locations=[folder])
        assert spec is not None
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{PACKAGE}.{name}")


def beside(name: str, path: str = "") -> Any:
    """A module of this folder. The folder itself must not be searched: its names are common ones."""
    spec = importlib.util.spec_from_file_location("faultlens_" + name, path or os.path.join(HERE, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
board_module, decoders = beside("board"), beside("decoders")


# ------------------------------------------------------------------------------------------ the server


class Server:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        modules = (sandbox(request["sandbox"], name) for name in ("guard", "confinement", "tasks"))
        self.guard, self.confinement, self.tasks = modules
        self.means = self.confinement.Means(*request["means"])
        self.limit = self.tasks.limit_here()  # before it loses sight of other processes
        self.guard.enter(self.means, [os.path.dirname(request["folder"])], serves=True)
        self.board = board_module.Board(request["board"])
        os.close(request["board"])
        self.answers = os.dup(1)
        point_at(os.devnull, 1, os.O_WRONLY)
        point_at(os.devnull, 2, os.O_WRONLY)
        self.child = 0
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)

    def answer(self, **what: Any) -> None:
        os.write(self.answers, json.dumps(what).encode() + b"\n")

    def prepare(self) -> bool:
        self.guard.offspring.adopt()
        self.confinement.filter_for_children(self.means)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if hard == resource.RLIM_INFINITY or hard > MAX_FILE:
            resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, hard))
        try:
            told = self.load()
        except BaseException as error:
            self.answer(ready=False, words=decoders.words(error))
            return False
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
        self.guard.prctl(self.guard.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(0)
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
        status: int = self.guard.offspring.end_all(child)
        return status


def point_at(path: str, descriptor: int, flags: int) -> None:
    opened = os.open(path, flags)
    os.dup2(opened, descriptor)
    os.close(opened)


# ------------------------------------------------------------------------------------------- the child


class Child:
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
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        self.server.tasks.at_most(self.server.limit)
        writable = [self.request["folder"], *self.request.get("writable", ())]
        self.server.confinement.confine(self.server.means, writable)
        sys.argv[:] = ["faultlens scan --decode"]

    def begin(self) -> None:
        try:
            self.settle()
            self.get_ready()
        except BaseException as error:
            self.board.say(decoders.words(error))
            self.words[board_module.READY] = board_module.FAILED
            os._exit(1)
        self.only_the_child()
        self.words[board_module.READY] = self.pid
        self.ring()

    def get_ready(self) -> None:
        self.decode = decoders.chosen(self.request["using"], self.request["modules"])

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
            while words[board_module.BATCH] == words[board_module.DONE]:
                if not os.read(self.request["go"], 64):
                    return
            for index in range(words[board_module.FIRST], words[board_module.COUNT]):
                self.try_item(index)
            words[board_module.DONE] = words[board_module.BATCH]
            self.ring()

    def try_item(self, index: int) -> None:
        self.words[board_module.AT] = index + 1
        offset, size, kind = self.board.entry(index)
        data = os.pread(self.request["data"], size, offset)
        refused = self.decode(board_module.KINDS[kind], data, self.count)
        self.only_the_child()
        if not self.is_whole():
            refused = "deadly", "", BROKEN
        if refused is not None:
            self.board.say(json.dumps([index, *refused], ensure_ascii=False))
        if refused is not None and refused[0] == "deadly":
            os._exit(1)

    def count(self) -> None:
        self.words[board_module.TRIED] += 1

    def is_whole(self) -> bool:
        try:
            data = os.fstat(self.request["data"])
            return (data.st_dev, data.st_ino) == self.data
        except OSError:
            return False


def main() -> None:
    server = Server(json.loads(sys.argv[1]))
    if server.prepare() and server.serve():
        child = Child(server)
        child.begin()
        try:
            child.work()
        finally:
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
