"""Which environment a dead program had, from its record."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultlens.doctor.aftermath import foreseen, target_of
from faultlens.records.crash import CgroupState, Crash, FileState, Limit, Outcome, Output, Program, PythonInfo
from faultlens.text.redaction import HIDDEN

EXCEPTION = Outcome(kind="exception", exit_code=1)


def test_after_an_exception_the_command_tells_the_python(tmp_path: Path) -> None:
    library = tmp_path / "op.so"
    library.touch()
    said = f"NotFoundError: {library}: undefined symbol: _ZN3tsl\n/gone/other.so: undefined symbol: x\n"
    program = Program(command=(sys.executable, "train.py"), directory=str(tmp_path))
    target = target_of(Crash(outcome=EXCEPTION, method="agent", program=program, output=Output(stderr=said)))
    assert target is not None
    assert target.interpreter.prefix == sys.prefix
    assert target.directory == tmp_path
    assert target.options.ops == (library,)


def test_limits_and_variables_are_those_of_the_dead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET", "ours")
    model = tmp_path / "model.tflite"
    model.touch()
    group = CgroupState(version=2, path="/x", pids_limit=9)
    target = target_of(
        Crash(
            outcome=Outcome(kind="signal", signal="SIGABRT"),
            method="agent",
            program=Program(
                environment={"SECRET": HIDDEN, "OMP_NUM_THREADS": "3", "FAULTLENS_AGENT": "/proc/1/fd/3"},
                python=PythonInfo(executable=sys.executable, prefix=sys.prefix),
            ),
            limits={"RLIMIT_AS": Limit(soft=1, hard=2)},
            cgroup=group,
            files=(FileState(path=str(model)), FileState(path="/gone/other.tflite")),
        )
    )
    assert target is not None
    assert target.variables == {"SECRET": "ours", "OMP_NUM_THREADS": "3"}
    assert target.limits["RLIMIT_AS"].soft == 1
    assert target.cgroup == group
    assert target.options.models == (model,)


@pytest.mark.parametrize(
    "program",
    [
        Program(command=("/bin/ls",)),
        Program(),
        Program(python=PythonInfo(executable="/gone/python", prefix="/gone")),
    ],
)
def test_nobody_is_asked_where_there_is_no_python(program: Program) -> None:
    crash = Crash(outcome=EXCEPTION, method="agent", program=program)
    assert target_of(crash) is None
    assert foreseen(crash, ["numpy-abi-mismatch"]) == ()
