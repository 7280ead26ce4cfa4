"""Imports TensorFlow once, then forks a child for every run that is asked for, and kills it when it takes too much.

Its argument is the functions that will be asked for, as JSON: what can be refused by reading them is, before that.
Reads one JSON object a line from stdin, and answers with one: {"ready": …} at first, then what came of each run. What
has taken more memory or time than it may is killed by us, long before the machine is in need; should the kernel
have to choose, it chooses the child (oom_score_adj)."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

from faultlens_sandbox import confinement, guard, limits, offspring

from . import during, names

LOOK_S = 0.004  # how often a child is looked at: at 10 GB/s that is 40 MB
PAGE = resource.getpagesize()


def main() -> None:
    guard.enter(confinement.Means(), [], serves=True)  # the user's own program: ended, but not confined
    offspring.adopt()
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is not an answer
    limits.no_core_file()
    limits.killed_first()
    for file, function, given in json.loads(sys.argv[1]):
        if problem := names.problem(file, function, given):
            say(answers, {"ready": False, "refused": problem})
            return
    started = time.monotonic()
    try:
        versions = import_libraries()
    except BaseException as error:
        say(answers, {"ready": False, "problem": f"{type(error).__name__}: {error}"})
        return
    gc.collect()
    gc.freeze()  # or every child would copy the memory of all modules at its first collection
    say(answers, {"ready": True, "versions": versions, "seconds": time.monotonic() - started, "resident": own(PAGE)})
    server = os.getpid()
    for line in sys.stdin:
        say(answers, attend(json.loads(line), server, answers))


def import_libraries() -> dict[str, str]:
    import tensorflow

    try:
        import keras
    except ImportError:
        keras = tensorflow.keras
    return {"tensorflow": tensorflow.__version__, "keras": keras.__version__}


def own(page: int) -> int:
    with open("/proc/self/statm") as file:
        _, resident, shared, *_ = map(int, file.read().split())
    return (resident - shared) * page


def attend(request: dict[str, Any], server: int, answers: int) -> dict[str, Any]:
    """One run, from the fork to its end."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        limits.die_with(server)
        os.close(reader)
        os.close(answers)
        carry_out(request, writer)
    os.close(writer)
    try:
        return watch(pid, reader, request["memory"], time.monotonic() + request["seconds"])
    finally:
        os.close(reader)


def carry_out(request: dict[str, Any], writer: int) -> None:
    """In the child; never returns."""
    status = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for folder in reversed(request["path"]):
            sys.path.insert(0, folder)
        from . import run  # it imports TensorFlow

        result = run.carry_out(request, lambda what: say(writer, {"at": what}))
        say(writer, result)
        status = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            say(writer, failure(error))
    finally:
        os._exit(status)


def say(descriptor: int, what: dict[str, Any]) -> None:
    os.write(descriptor, json.dumps(what).encode() + b"\n")  # less than a pipe holds


def failure(error: BaseException) -> dict[str, Any]:
    return {
        "error": type(error).__name__,
        "words": str(error)[:2000],
        "ours": getattr(error, "ours", False),
        "ended": getattr(error, "ended", False),
        "during": during.what_failed(error),
        "line": during.line_of(error),
    }


def watch(pid: int, reader: int, memory: int, deadline: float) -> dict[str, Any]:
    """What the child said, or why it was stopped; what it was doing, and the most memory it was seen with."""
    said, highest, killed, open_ = b"", 0, "", True
    while True:
        if open_ and select.select([reader], [], [], LOOK_S)[0]:
            piece = os.read(reader, 1 << 16)
            said, open_ = said + piece, bool(piece)
        elif not open_:
            time.sleep(LOOK_S)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        highest = max(highest, anonymous(pid))
        if not killed and (highest > memory or time.monotonic() > deadline):
            killed = "memory" if highest > memory else "time"
            kill_all(pid)
    offspring.end_all(0)  # what it left behind
    if open_:
        while select.select([reader], [], [], 0)[0] and (piece := os.read(reader, 1 << 16)):
            said += piece
    heard = [json.loads(line) for line in said.split(b"\n")[:-1]]
    result = heard.pop() if heard and "at" not in heard[-1] else {}
    at = heard[-1]["at"] if heard else ""
    return {"status": status, "killed": killed, "highest": highest, "at": at, "result": {} if killed else result}


def anonymous(pid: int) -> int:
    """Bytes of memory that are on no disk."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * PAGE


def kill_all(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
