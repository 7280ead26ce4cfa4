"""A reproducer for a report that somebody else wrote: all of the work is done inside the sandbox, from the first start
of the Python that it names.

What comes back is JSON, because whoever runs in there could have changed what the worker says."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec

from faultlens.errors import FaultlensError
from faultlens.op_model.files import SCRIPT
from faultlens.records.crash import Crash, decode_address, encode_address
from faultlens.records.diagnosis import Reproducer
from faultlens.repro.reproduce import reproduce, wanted_death
from faultlens.repro.task import Found, MayRun, NotReproducedError, Options, Tell
from faultlens.sandbox.guest import confinement, guard

MAX_ANSWER = 256 << 20
ANSWER = "answer.json"


class Answer(msgspec.Struct, frozen=True):
    reproducer: Reproducer | None = None
    name: str = ""
    proof: Crash | None = None
    not_reproduced: str | None = None
    problem: str | None = None
    advice: str = ""


def reproduce_confined(crash: Crash, options: Options, may_run: MayRun, tell: Tell) -> Found:
    means = confinement.available()
    if not means.holds_files:
        raise FaultlensError(
            "Nothing was run: this kernel cannot confine what somebody else wrote.",
            "Try it on a machine with Linux 6.2 or newer.",
        )
    wanted = wanted_death(crash)
    top = Path(tempfile.mkdtemp(prefix="faultlens-repro-"))
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _work(top, means, partial(reproduce, crash, options, may_run, tell))
    try:
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        finally:
            guard.end_by_number(pid)
        answer = _answer(top / ANSWER)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    if answer.not_reproduced is not None:
        raise NotReproducedError(answer.not_reproduced)
    if answer.problem is not None or answer.reproducer is None:
        raise FaultlensError(answer.problem or "The sandbox gave no answer.", answer.advice)
    made = answer.reproducer
    files = {**made.files, SCRIPT: made.script.encode()}
    return Found(made.kind, answer.name, files, wanted, made.runs, made.same, answer.proof)


def _work(top: Path, means: confinement.Means, reproduce: Callable[[], Found]) -> NoReturn:
    """In the child. Never returns: nothing of the parent may run twice."""
    answer = Answer(problem="The sandbox could not be entered.")
    try:
        guard.enter(means, [str(top)])
        confinement.confine(means, [str(top)])
        tempfile.tempdir = str(top)
        found = reproduce()
        answer = Answer(reproducer=found.record(), name=found.name, proof=found.proof)
    except NotReproducedError as reason:
        answer = Answer(not_reproduced=str(reason))
    except FaultlensError as error:
        answer = Answer(problem=error.problem, advice=error.advice)
    except BaseException as error:
        answer = Answer(problem=f"It failed inside the sandbox with {type(error).__name__}: {error}.")
    finally:
        with contextlib.suppress(OSError):
            (top / ANSWER).write_bytes(msgspec.json.encode(answer, enc_hook=encode_address))
        os._exit(0)


def _answer(path: Path) -> Answer:
    """Of a worker that may have been killed, or worse."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return msgspec.json.decode(file.read(MAX_ANSWER), type=Answer, dec_hook=decode_address)
    except (OSError, ValueError, RecursionError) as error:
        raise FaultlensError("The sandbox gave no answer that can be read.", "Try again.") from error
