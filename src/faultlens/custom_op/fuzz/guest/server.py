"""Runs in the Python of the user's programs: loads TensorFlow and the library of ops once, then forks processes that
try inputs. Needs nothing but the standard library and TensorFlow, from Python 3.9 on.

How it is asked and answers: see the server of decoders, which it is built on. It never runs an op itself: a process
that is forked from one whose thread pools have started would hang."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LOADING_SECONDS = 60
MAX_WORDS, MOST_SAID = 60_000, 3000
BROKEN = "it closed descriptors that are not its own"


def beside(name: str, path: str = "") -> Any:
    """A module of this folder, under a name of its own. The folder itself must not be searched."""
    spec = importlib.util.spec_from_file_location("faultlens_" + name, path or os.path.join(HERE, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faultlens_" + name] = module
    spec.loader.exec_module(module)
    return module


sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
request: dict[str, Any] = json.loads(sys.argv[1])
forking = beside("fork_server", request["fork server"])
registered = beside("registered")


class Server(forking.Server):  # type: ignore[misc, name-defined]
    def load(self) -> dict[str, Any]:
        import tensorflow as tf

        told = self.tried_loading()
        if "gradients" not in told:
            return told
        self.library = tf.load_op_library(self.request["library"])
        describe = beside("describe_op", self.request["describe"])
        tf.raw_ops.Identity  # noqa: B018 (its module is loaded here, once for all children)
        for name in ("tensors", "comparing", "calls", "forms", "alone", "crowds", "growing", "gradients", "probes"):
            beside(name)
        if fence := self.request.get("fence"):
            sys.modules["faultlens_tensors"].fence.update(fence, table=os.open(fence["table"], os.O_RDWR))
        return {"ops": registered.ops_of(self.request["library"], self.library, describe, told["gradients"])}

    def tried_loading(self) -> dict[str, Any]:
        """Loading runs the library's own code, importing the user's: it is tried in a process that may die of it. Which
        ops have gradients, or why it cannot be."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reader)
                forking.libc.alarm(LOADING_SECONDS)
                Child(self).settle()
                os.write(writer, json.dumps(self.loaded())[:MAX_WORDS].encode("utf-8", "replace"))
            finally:
                os._exit(0)
        os.close(writer)
        said = b""
        while part := os.read(reader, 4096):
            said += part
        os.close(reader)
        status = self.guard.offspring.end_all(pid)
        try:
            told: dict[str, Any] = json.loads(said)
        except ValueError:
            told = {"loading": {"status": status, "words": said.decode("utf-8", "replace")}}
        return told

    def loaded(self) -> dict[str, Any]:
        import tensorflow as tf

        try:
            tf.load_op_library(self.request["library"])
        except BaseException as error:
            return {"loading": {"status": 0, "words": f"{type(error).__name__}: {error}"[:MOST_SAID]}}
        kernels = registered.count_kernels(self.request["library"])
        try:
            import_all(self.request["modules"])
        except BaseException as error:
            return {"importing": f"{type(error).__name__}: {error}"[:MOST_SAID]}
        if registered.count_kernels(self.request["library"]) != kernels:  # TensorFlow would refuse every call
            return {"importing": "it loads another library with kernels of the same ops"}
        return {"gradients": registered.with_gradients(self.request["library"])}


def import_all(modules: dict[str, Any]) -> None:
    """In each process anew: what they run of TensorFlow starts threads, which do not survive a fork."""
    if modules["names"] and modules["folder"] not in sys.path:
        sys.path.insert(0, modules["folder"])
    for name in modules["names"]:
        importlib.import_module(name)


class Child(forking.Child):  # type: ignore[misc, name-defined]
    def settle(self) -> None:
        with contextlib.suppress(OSError):
            os.makedirs(self.request["folder"], 0o700, exist_ok=True)
        super().settle()
        forking.point_at(os.path.join(self.request["folder"], "stdout"), 1, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if "forbid signals" in self.request and self.server.means.seccomp:
            seccomp = self.server.confinement.seccomp
            seccomp.install(seccomp.program_of(seccomp.signals_only_to(os.getpid())))
        sys.argv[:] = ["faultlens op test"]

    def get_ready(self) -> None:
        import tensorflow as tf

        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
        tf.identity(tf.constant([1.0])).numpy()  # what a first op takes is not the first input's fault
        setattr(sys.modules["faultlens_calls"], "library", server.library)  # noqa: B010 (of a module)
        import_all(self.request["modules"])

    def try_item(self, index: int) -> None:
        self.words[forking.board_module.AT] = index + 1
        offset, size, _ = self.board.entry(index)
        asked = json.loads(os.pread(self.request["data"], size, offset))
        self.count()
        told = sys.modules["faultlens_probes"].tried(asked)
        self.only_the_child()
        if not self.is_whole():
            told = {"broken": BROKEN}
        self.board.say(json.dumps([index, told]))
        if "broken" in told:
            os._exit(1)


if __name__ == "__main__":
    server = Server(request)
    if server.prepare() and server.serve():
        child = Child(server)
        child.begin()
        try:
            child.work()
        finally:
            os._exit(1)
    os._exit(0)
