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

from faultlens_sandbox import board, confinement, fork_server, offspring

from . import references, registered

LOADING_SECONDS = 60
MAX_WORDS, MOST_SAID = 60_000, 3000


class Server(fork_server.Server):  # type: ignore[misc]
    def load(self) -> dict[str, Any]:
        import tensorflow as tf

        told = self.tried_loading()
        if "gradients" not in told:
            return told
        self.library = tf.load_op_library(self.request["library"])
        describe = described_by(self.request["describe"])
        tf.raw_ops.Identity  # noqa: B018 (its module is loaded here, once for all children)
        # Imported when TensorFlow is loaded, and before any fork.
        from . import calls, probes, tensors

        self.probes = probes
        calls.library = self.library
        if fence := self.request.get("fence"):
            tensors.fence.update(fence, table=os.open(fence["table"], os.O_RDWR))
        return {"ops": registered.ops_of(self.request["library"], self.library, describe, told["gradients"])}

    def tried_loading(self) -> dict[str, Any]:
        """Loading runs the library's own code, importing the user's: it is tried in a process that may die of it. Which
        ops have gradients, or why it cannot be."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reader)
                fork_server.libc.alarm(LOADING_SECONDS)
                Child(self).settle()
                os.write(writer, json.dumps(self.loaded())[:MAX_WORDS].encode("utf-8", "replace"))
            finally:
                os._exit(0)
        os.close(writer)
        said = b""
        while part := os.read(reader, 4096):
            said += part
        os.close(reader)
        status = offspring.end_all(pid)
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
        try:
            if self.request["reference"]:
                references.function_of(self.request["reference"])
        except BaseException as error:
            return {"reference": f"{type(error).__name__}: {error}"[:MOST_SAID]}
        if registered.count_kernels(self.request["library"]) != kernels:  # TensorFlow would refuse every call
            return {"importing": "it loads another library with kernels of the same ops"}
        return {"gradients": registered.with_gradients(self.request["library"])}


def import_all(modules: dict[str, Any]) -> None:
    """In each process anew: what they run of TensorFlow starts threads, which do not survive a fork."""
    if modules["names"] and modules["folder"] not in sys.path:
        sys.path.insert(0, modules["folder"])
    for name in modules["names"]:
        importlib.import_module(name)


class Child(fork_server.Child):  # type: ignore[misc]
    name = "faultlens op test"

    def settle(self) -> None:
        with contextlib.suppress(OSError):
            os.makedirs(self.request["folder"], 0o700, exist_ok=True)
        super().settle()
        fork_server.point_at(os.path.join(self.request["folder"], "stdout"), 1, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if "forbid signals" in self.request and self.server.means.seccomp:
            seccomp = confinement.seccomp
            seccomp.install(seccomp.program_of(seccomp.signals_only_to(os.getpid())))

    def get_ready(self) -> None:
        import tensorflow as tf

        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
        tf.identity(tf.constant([1.0])).numpy()  # what a first op takes is not the first input's fault
        import_all(self.request["modules"])

    def try_item(self, index: int) -> None:
        self.words[board.AT] = index + 1
        offset, size, _ = self.board.entry(index)
        asked = json.loads(os.pread(self.request["data"], size, offset))
        self.count()
        told = self.server.probes.tried(asked)
        self.only_the_child()
        if not self.is_whole():
            told = {"broken": fork_server.BROKEN}
        self.board.say(json.dumps([index, told]))
        if "broken" in told:
            os._exit(1)


def described_by(path: str) -> Any:
    """The module that tells how ops are called, which is not of this folder."""
    spec = importlib.util.spec_from_file_location("faultlens_describe", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    fork_server.run(Server(json.loads(sys.argv[1])), Child)
