"""The one line: what died, how, and where."""

from __future__ import annotations

import pytest

import recorded
from faultlens.records.crash import CgroupState, Crash, Fault, Frame, Limit, Outcome, Output, Program, Thread
from faultlens.report.headline import headline, kind_of_end
from recorded import ended

PYTHON = Program(command=("/usr/bin/python", "train.py"), directory="/home/ada")
KILLED = Outcome(kind="signal", signal="SIGKILL")
STEP = Frame(kind="python", function="step", file="/home/ada/train.py", line=37)
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 9, in <module>
    main()
  File "/home/ada/train.py", line 5, in main
    model.fit(data)
  File "/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e
keras.src.errors.ShapeError: shapes (2, 3) and (4,) do not fit
"""


def cgroup(oom_kills: int | None, limit: int | None = None) -> CgroupState:
    return CgroupState(version=1, path="/", oom_kills=oom_kills, memory_limit=limit)


CASES = {
    "memory limit": (
        {"outcome": KILLED, "cgroup_before": cgroup(2), "cgroup": cgroup(3, 1 << 30)},
        "python was killed (SIGKILL) by the memory limit of its cgroup, 1 GiB",
    ),
    "memory of the machine": (
        {"outcome": KILLED, "pid": 77, "kernel_log": ("Out of memory: Killed process 77 (python) total-vm:1kB",)},
        "python was killed (SIGKILL) by the kernel, for want of memory",
    ),
    "another process named in the kernel log": (
        {"outcome": KILLED, "pid": 7, "kernel_log": ("Out of memory: Killed process 77 (python) total-vm:1kB",)},
        "python was killed (SIGKILL); by whom is not known",
    ),
    "killed from outside": (
        {"outcome": KILLED, "cgroup_before": cgroup(2), "cgroup": cgroup(2, 1 << 30)},
        "python was killed (SIGKILL) from outside: the kernel killed nothing for memory in its cgroup",
    ),
    "killed, perhaps by the limit of CPU time": (
        {
            "outcome": KILLED,
            "cgroup_before": cgroup(2),
            "cgroup": cgroup(2),
            "limits": {"RLIMIT_CPU": Limit(soft=5, hard=5)},
            "seconds": 5.2,
        },
        "python was killed (SIGKILL); by whom is not known",
    ),
    "killed long before the limit of CPU time": (
        {
            "outcome": KILLED,
            "cgroup_before": cgroup(2),
            "cgroup": cgroup(2),
            "limits": {"RLIMIT_CPU": Limit(soft=3600, hard=3600)},
            "seconds": 5.2,
        },
        "python was killed (SIGKILL) from outside: the kernel killed nothing for memory in its cgroup",
    ),
    "killed, counter unknown": (
        {"outcome": KILLED, "cgroup_before": cgroup(None), "cgroup": cgroup(None)},
        "python was killed (SIGKILL); by whom is not known",
    ),
    "SIGTERM": (
        {"outcome": Outcome(kind="signal", signal="SIGTERM")},
        "python was ended by SIGTERM",
    ),
    "SIGTERM handed on": (
        {"outcome": Outcome(kind="signal", signal="SIGTERM"), "handed_on": ("SIGTERM from process 7",)},
        "python was ended by SIGTERM from process 7",
    ),
    "SIGSEGV sent": (
        {"pid": 1, "fault": Fault(signal="SIGSEGV", code="SI_USER", thread=1, sender_pid=123)},
        "python was ended by SIGSEGV, sent by process 123",
    ),
    "no facts": ({}, "python died by SIGSEGV"),
    "at exit": ({"exiting": True}, "python died by SIGSEGV while shutting down"),
    "hang": (
        {"outcome": Outcome(kind="hang"), "seconds": 30.0, "pid": 1, "threads": (Thread(id=1, frames=(STEP,)),)},
        "python was still running after 30 s and was stopped in train.py:37 (step)",
    ),
    "exception": (
        {"outcome": Outcome(kind="exception", exit_code=1), "output": Output(stderr=TRACEBACK)},
        "python ended with ShapeError in train.py:5 (main): shapes (2, 3) and (4,) do not fit",
    ),
    "exception without its traceback": (
        {"outcome": Outcome(kind="exception", exit_code=1)},
        "python ended with a Python exception",
    ),
    "exit code that looks like a signal": (
        {"outcome": Outcome(kind="exit", exit_code=139)},
        "python exited with code 139, which is not a signal",
    ),
    "exit code": ({"outcome": Outcome(kind="exit", exit_code=3)}, "python exited with code 3"),
    "fine": ({"outcome": Outcome(kind="ok", exit_code=0)}, "python ended normally"),
    "a handler of the program's own ended it": (
        {
            "outcome": Outcome(kind="exit", exit_code=7),
            "fault": Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=1, seen="chained"),
        },
        "python met SIGSEGV and then exited with code 7",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_headline(case: str) -> None:
    facts, expected = CASES[case]
    assert headline(ended(program=PYTHON, **facts)) == expected


RECORDED = {
    "segv_in_custom_op": "python died by SIGSEGV in train.py:24 (main)"
    " → fast_gather.so, FastGatherOp<…>::Compute, thread 'tf_Compute'",
    "abort_by_check": "python died by SIGABRT in prepare.py:18 (shards)"
    " → libtensorflow_framework.so.2, tensorflow::TensorShapeBase<…>::AddDim",
    "bus_truncated_file": "python3 died by SIGBUS in /srv/jobs/features.py:112 (batches) → libc.so.6+0x15e1c0",
    "child_crashed": "child process python (612) died by SIGFPE in pool.py:8 (work)"
    " → libtensorflow_cc.so.2, tensorflow::BatchToSpaceOp<…>::Compute;"
    " then its parent exited with code 1",
}


@pytest.mark.parametrize("name", RECORDED)
def test_headline_of_recorded_crash(name: str) -> None:
    assert headline(recorded.report(name).crash) == RECORDED[name]


def test_grandchild_crashed_while_all_above_lived_on() -> None:
    fine = Outcome(kind="ok", exit_code=0)
    grandchild = ended(pid=3, program=PYTHON)
    child = Crash(outcome=fine, method="agent", pid=2, children=(grandchild,))
    parent = Crash(outcome=fine, method="agent", pid=1, children=(child,), program=PYTHON)
    assert headline(parent) == "child process python (3) died by SIGSEGV; its parent lived on and ended normally"


@pytest.mark.parametrize(
    ("signal", "kind"), [("SIGSEGV", "crash"), ("SIGKILL", "killed"), ("SIGTERM", "ended"), ("SIGRTMIN", "crash")]
)
def test_kind(signal: str, kind: str) -> None:
    assert kind_of_end(ended(outcome=Outcome(kind="signal", signal=signal))) == kind
