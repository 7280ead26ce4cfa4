"""Which process is explained, and how findings are ranked."""

from __future__ import annotations

import pytest

from faultlens.crash import Crash, Fault, Outcome, Output, Program
from faultlens.diagnose import diagnose, subject_of

FORKED = Program(command=("python", "train.py"))
SPAWNED = Program(command=("python", "-c", "<redacted>", "--multiprocessing-fork"))
OTHER = Program(command=("python", "probe.py"))
POOL = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n'
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly\n"
)


def with_child(outcome: Outcome, program: Program, stderr: str = "") -> Crash:
    fault = Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=2)
    child = Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="agent", pid=2, fault=fault, program=program)
    return Crash(
        outcome=outcome, method="status", pid=1, program=FORKED, output=Output(stderr=stderr), children=(child,)
    )


@pytest.mark.parametrize(
    ("outcome", "program", "stderr", "explained"),
    [
        (Outcome(kind="ok", exit_code=0), OTHER, "", 1),  # it tried something, and survived it
        (Outcome(kind="ok", exit_code=0), FORKED, "", 1),
        (Outcome(kind="exit", exit_code=3), SPAWNED, "", 2),
        (Outcome(kind="exit", exit_code=2), OTHER, "", 1),
        (Outcome(kind="exit", exit_code=139), OTHER, "", 2),
        (Outcome(kind="exit", exit_code=245), OTHER, "", 2),
        (Outcome(kind="exception", exit_code=1), OTHER, POOL, 2),
        (Outcome(kind="exception", exit_code=1), OTHER, POOL.replace("BrokenProcessPool: A process in the process "
         "pool was terminated abruptly", "Oops: bad value"), 1),
        (Outcome(kind="signal", signal="SIGTERM"), FORKED, "", 1),
    ],
)  # fmt: skip
def test_whose_end_is_explained(outcome: Outcome, program: Program, stderr: str, explained: int) -> None:
    assert subject_of(with_child(outcome, program, stderr)).pid == explained


def test_nothing_known_is_said_to_be_unknown_with_what_to_try_next() -> None:
    crash = Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="status")
    best = diagnose(crash).diagnoses[0]
    assert (best.cause, best.confidence) == ("unknown", 0.0)
    assert best.fixes


def test_a_healthy_program_needs_no_verdict() -> None:
    verdict = diagnose(Crash(outcome=Outcome(kind="ok", exit_code=0), method="status"))
    assert verdict == ((), ())
