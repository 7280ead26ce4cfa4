"""Runs in the program's own Python: imports what takes long once, then forks a child for every trial.

Needs nothing but the standard library, from Python 3.9 on. Its arguments: how it is confined (JSON), and the modules.
Reads one JSON object a line from stdin: the script, the folder it runs in, where its output goes, whether the
interpreter ends in order (which takes two seconds with TensorFlow) or at once. Answers with {"pid": …} when the trial
has begun and {"status": …} when it has ended, with all that it started."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
import traceback
from typing import Any

from . import confinement, guard, limits, offspring

MAX_FILE = 2 << 30
OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def serve(modules: list[str], means: confinement.Means, writable: list[str]) -> dict[str, Any] | None:
    """Returns in the child only, with the request to carry out; None at the end."""
    guard.enter(means, writable, serves=True)
    offspring.adopt()
    confinement.filter_for_children(means)
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    limits.no_core_file()
    limits.at_most_written(MAX_FILE)
    limits.killed_first()
    missing = [name for name in modules if not can_import(name)]
    answer(answers, {"ready": True, "missing": missing})
    server = os.getpid()
    gc.freeze()  # or every child would copy the memory of all modules at its first collection
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            limits.die_with(server)
            os.close(answers)
            os.close(nowhere)
            return request
        answer(answers, {"pid": pid})
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        answer(answers, {"status": offspring.end_all(pid)})
    return None


def can_import(name: str) -> bool:
    try:
        importlib.import_module(name)
        return True
    except Exception:
        return False


def answer(descriptor: int, what: dict[str, Any]) -> None:
    os.write(descriptor, json.dumps(what).encode() + b"\n")


def settle(request: dict[str, Any], means: confinement.Means, writable: list[str]) -> None:
    """A session, a folder and an output of its own; nothing to read, and nowhere else to write."""
    os.setsid()
    os.chdir(request["folder"])
    redirect(0, os.open(os.devnull, os.O_RDONLY))
    redirect(1, os.open(request["stdout"], OUTPUT, 0o600))
    redirect(2, os.open(request["stderr"], OUTPUT, 0o600))
    confinement.confine(means, writable)
    sys.argv[:] = [request["script"], *request["arguments"]]
    sys.path.insert(0, request["folder"])


def redirect(descriptor: int, opened: int) -> None:
    os.dup2(opened, descriptor)
    os.close(opened)


def become(script: str) -> None:
    """The script takes the place of this file: its names are those of __main__."""
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    names = sys.modules["__main__"].__dict__
    kept = {name: names[name] for name in ("__builtins__", "__name__", "__loader__", "__spec__")}
    names.clear()
    names.update(kept, __file__=script, __doc__=None)
    exec(code, names)


def run_and_leave(script: str) -> None:
    """As `become`, without the interpreter's work at its end. What is needed is passed on: the names will be gone."""
    leave, flush, finish, print_exception = os._exit, sys.stdout.flush, threading._shutdown, traceback.print_exc  # type: ignore[attr-defined]
    status = 0
    try:
        become(script)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        print_exception()
        status = 1
    finish()  # threads that are not daemons are waited for
    flush()
    leave(status & 255)


def main() -> None:
    setup: dict[str, Any] = json.loads(sys.argv[1])
    means, writable = confinement.Means(*setup["means"]), setup["writable"]
    request = serve(sys.argv[2:], means, writable)
    if request is None:
        return
    try:
        settle(request, means, writable)
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # what cannot be confined is not run
    if request["in order"]:
        become(request["script"])
    else:
        run_and_leave(request["script"])
