"""Which process is explained, and how findings are ranked."""

from __future__ import annotations

import pytest

import recorded
from faultlens.crash import Crash, Fault, Outcome, Output, Program
from faultlens.diagnose import diagnose, subject_of
from faultlens.diagnosis import Fix
from faultlens.finding import Finding

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


# ---------------------------------------------------------------------------------- what the doctor foresaw


def _foreseen(cause: str, severity: str = "error") -> Finding:
    return Finding(
        check="numpy-abi",
        severity=severity,  # type: ignore[arg-type]
        title="fast.so was built for NumPy 1; NumPy 2.1.3 is installed",
        evidence=(),
        fixes=(Fix(title="install NumPy 1", command="pip install 'numpy<2'"),),
        causes=(cause,),
    )


def test_a_finding_of_the_doctor_supports_its_cause() -> None:
    crash = recorded.report("segv_in_custom_op").crash
    plain = diagnose(crash).diagnoses[0]
    fed = diagnose(crash, (_foreseen(plain.cause),)).diagnoses[0]
    assert fed.cause == plain.cause
    assert fed.confidence >= plain.confidence
    assert fed.evidence[-1].source == "faultlens doctor numpy-abi"
    assert fed.fixes[0].command == "pip install 'numpy<2'"
    assert fed.fixes[1:] == plain.fixes
    warned = diagnose(crash, (_foreseen(plain.cause, "warning"),)).diagnoses[0]
    assert warned.confidence == plain.confidence  # a condition that was not seen to hold proves nothing


def test_a_finding_about_something_else_changes_nothing() -> None:
    crash = recorded.report("segv_in_custom_op").crash
    assert (
        diagnose(crash, (_foreseen("numpy-abi-mismatch"),)).diagnoses[0].evidence
        == diagnose(crash).diagnoses[0].evidence
    )


def test_where_nothing_else_is_known_the_doctor_gives_leads() -> None:
    crash = Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="status")
    found = diagnose(crash, (_foreseen("numpy-abi-mismatch"),)).diagnoses[0]
    assert found.cause == "unknown"
    assert found.evidence[-1].fact == "fast.so was built for NumPy 1; NumPy 2.1.3 is installed"
    assert found.fixes[0].title == "install NumPy 1"
