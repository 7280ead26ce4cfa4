"""Which process is explained, and how findings are ranked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import places
import recorded
from faultlens.diagnosis.causes import base as causes_base
from faultlens.diagnosis.causes import catalogue
from faultlens.diagnosis.causes.base import Cause
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file
from faultlens.records.crash import Crash, Fault, Outcome, Output, Program
from faultlens.records.diagnosis import Diagnosis, Evidence, Fix
from faultlens.records.finding import Finding

FORKED = Program(command=("python", "train.py"))
SPAWNED = Program(command=("python", "-c", "<redacted>", "--multiprocessing-fork"))
OTHER = Program(command=("python", "probe.py"))
POOL = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n'
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly\n"
)


def with_child(outcome: Outcome, program: Program, said: str = "", later: float = 0.1) -> Crash:
    fault = Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=2)
    died = Outcome(kind="signal", signal="SIGSEGV")
    child = Crash(outcome=died, method="agent", pid=2, fault=fault, program=program, seconds=5.0)
    return Crash(
        outcome=outcome,
        method="status",
        pid=1,
        program=FORKED,
        output=Output(stderr=said),
        children=(child,),
        seconds=5.0 + later,
    )


def _raised(line: str) -> str:
    return f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{line}\n'


OK, EXIT, EXCEPTION = (Outcome(kind=kind, exit_code=code) for kind, code in (("ok", 0), ("exit", 1), ("exception", 1)))


@pytest.mark.parametrize(
    ("outcome", "program", "said", "later", "explained"),
    [
        (OK, OTHER, "", 0.1, 1),  # it tried something, and survived it
        (OK, FORKED, "", 0.1, 1),
        (Outcome(kind="signal", signal="SIGTERM"), FORKED, "", 0.1, 1),  # so has a server that somebody ends
        (Outcome(kind="signal", signal="SIGKILL"), FORKED, "", 0.1, 1),
        (EXIT, SPAWNED, "", 0.1, 2),
        (EXIT, OTHER, "", 0.1, 2),  # a launcher
        (EXIT, OTHER, "error: data.csv not found", 9.0, 1),  # it went on, and failed for a reason of its own
        (EXIT, OTHER, "[gw1] node down: Not properly terminated", 9.0, 2),  # pytest goes on with other workers
        (EXIT, OTHER, "train.sh: line 2: 2 Segmentation fault", 9.0, 2),
        (Outcome(kind="exit", exit_code=139), OTHER, "", 9.0, 2),
        (Outcome(kind="exit", exit_code=245), OTHER, "", 9.0, 2),
        (EXCEPTION, OTHER, POOL, 9.0, 2),
        (EXCEPTION, OTHER, _raised("nbclient.exceptions.DeadKernelError: Kernel died"), 9.0, 2),
        (EXCEPTION, OTHER, _raised("EOFError"), 0.1, 2),
        (EXCEPTION, OTHER, _raised("RuntimeError: 2 is gone"), 9.0, 2),  # its number
        (EXCEPTION, OTHER, _raised("KeyError: 'label'"), 0.1, 1),  # its own affair
        (EXCEPTION, FORKED, _raised("KeyError: 'label'"), 0.1, 2),
        (EXCEPTION, FORKED, _raised("KeyError: 'label'"), 9.0, 1),
    ],
)
def test_whose_end_is_explained(outcome: Outcome, program: Program, said: str, later: float, explained: int) -> None:
    assert subject_of(with_child(outcome, program, said, later)).pid == explained


@pytest.mark.parametrize(("times", "explained"), [((1.0, 4.9, 5.0), 4), ((1.0, 1.2, 5.0), 5), ((5.0, 4.8, 1.0), 4)])
def test_of_several_the_first_of_the_last_is_explained(times: tuple[float, ...], explained: int) -> None:
    crash = with_child(EXIT, OTHER)
    (child,) = crash.children
    died = tuple(replace(child, pid=3 + number, seconds=seconds) for number, seconds in enumerate(times))
    assert subject_of(replace(crash, children=died)).pid == explained


@pytest.mark.parametrize(("program", "explained"), [(FORKED, 2), (OTHER, 1)])
def test_a_hang_is_explained_by_a_worker_that_died(program: Program, explained: int) -> None:
    assert subject_of(with_child(Outcome(kind="timeout"), program, later=60)).pid == explained


@pytest.mark.parametrize(("sender", "explained"), [(1, 2), (77, 1)])
def test_a_wrapper_that_ends_by_the_signal_of_its_child(sender: int, explained: int) -> None:
    fault = Fault(signal="SIGSEGV", code="SI_USER", thread=1, sender_pid=sender)
    crash = with_child(Outcome(kind="signal", signal="SIGSEGV"), OTHER)
    assert subject_of(replace(crash, fault=fault)).pid == explained


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


# --------------------------------------------------------------------------------- two that explain the same facts


class _Rule(Cause):
    """
    ## How to prove it
    Look at {slug}. And then elsewhere.
    """

    def __init__(self, slug: str, code: str, strength: float, facts: int) -> None:
        self.slug, self.code = slug, code  # type: ignore[misc]
        self.found = causes_base.Finding(
            strength=strength,
            title=f"{slug} did it",
            evidence=tuple(Evidence(fact=f"{slug} {number}", source="made up") for number in range(facts)),
            fixes=(),
        )

    @property
    def explanation(self) -> str:
        return super().explanation.replace("{slug}", self.slug)

    def examine(self, case: Case) -> causes_base.Finding | None:  # noqa: ARG002
        return self.found


def _between(monkeypatch: pytest.MonkeyPatch, *rules: _Rule) -> tuple[Diagnosis, ...]:
    monkeypatch.setattr("faultlens.diagnosis.rank.catalogue", lambda: rules)
    crash = Crash(
        outcome=Outcome(kind="signal", signal="SIGSEGV"),
        method="agent",
        fault=Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=1),
    )
    return diagnose(crash).diagnoses


def test_a_tie_is_decided_by_the_number_of_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    (alone,) = _between(monkeypatch, _Rule("two", "FL999", 0.9, 3))
    first, second = _between(monkeypatch, _Rule("one", "FL998", 0.9, 2), _Rule("two", "FL999", 0.9, 3))
    assert (first.cause, second.cause) == ("two", "one")
    assert first.confidence < alone.confidence  # the other one might be right
    assert 0.5 < first.confidence <= 0.8 and first.confidence + second.confidence == pytest.approx(1)
    assert first.evidence[-1].fact == "FL998 one explains the facts nearly as well: one did it"


def test_two_that_nothing_decides_are_both_named_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _between(monkeypatch, _Rule("one", "FL998", 0.9, 2), _Rule("two", "FL999", 0.9, 2))
    assert (first.confidence, second.confidence) == (0.5, 0.5)
    assert first.evidence[-1].fact == "FL999 two explains the facts as well: two did it"
    assert first.fixes[-1].title == "find out whether it is one or two"
    assert first.fixes[-1].detail == "one: Look at one. two: Look at two."


def test_all_that_is_said_of_one_end_is_no_more_than_certain() -> None:
    for path in sorted(places.RECORDED.glob("*.json")):
        found = diagnose(report_file.read(path).crash).diagnoses
        assert sum(each.confidence for each in found[:2]) <= 1.001, path.stem


def test_every_cause_says_in_a_sentence_how_it_is_proved() -> None:
    for cause in catalogue():
        assert 20 < len(cause.proof) < 400, cause.slug
