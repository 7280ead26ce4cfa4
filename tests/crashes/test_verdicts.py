"""One crash, seen in several ways, gets one verdict; and the same again from its stored report."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from faultlens.diagnosis.rank import diagnose
from faultlens.inspection.corefile.read import read_core
from faultlens.records import report_file
from faultlens.records.crash import Crash
from faultlens.supervise.sources import with_sources

PROGRAM = """\
import ctypes

lib = ctypes.CDLL({library!r})


def work():
    lib.{call}


work()
"""

CRASHES = [
    ("read_null()", "native-null-dereference"),
    ("divide(1, 0)", "native-division-by-zero"),
    ("trap()", "deliberate-trap"),
    ("recurse(0)", "stack-overflow"),
    ("write_read_only()", "read-only-write"),
]


def verdict(crash: Crash) -> tuple[str, int | None]:
    best = diagnose(crash).diagnoses[0]
    return best.cause, best.location.line if best.location else None


@pytest.fixture
def program(tmp_path: Path, native: Path):
    def write(call: str) -> list[str | Path]:
        (tmp_path / "main.py").write_text(PROGRAM.format(library=str(native), call=call))
        return [sys.executable, "main.py"]

    return write


@pytest.mark.parametrize(("call", "cause"), CRASHES)
def test_agent_tracer_and_core_agree(run, program, tmp_path: Path, call: str, cause: str) -> None:
    expected = (cause, 7)
    cores = Path("/proc/sys/kernel/core_pattern").read_text().strip() == "core"
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    cores = cores and resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY

    def allow_core() -> None:
        if cores:
            resource.setrlimit(resource.RLIMIT_CORE, unlimited)

    live = run(program(call), preexec_fn=allow_core).died
    assert verdict(live) == expected
    assert verdict(run(program(call), options=["--capture", "ptrace"]).died) == expected
    if cores:
        core = next(iter([*tmp_path.glob("core"), *tmp_path.glob("core.*")]))
        assert verdict(with_sources(read_core(core))) == expected


def test_a_stored_report_gets_the_same_verdict_again(run, program) -> None:
    done = run(program("read_null()"))
    stored = report_file.read(done.saved[0])
    assert stored.diagnoses == diagnose(stored.crash).diagnoses
    assert stored.diagnoses[0].cause == "native-null-dereference"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("print('fine')", None),
        ("raise ValueError('x')", "python-exception"),
        ("import sys; sys.exit(139)", "clean-exit"),
        ("import os, signal; os.kill(os.getppid(), 0); os.kill(os.getpid(), signal.SIGKILL)", "killed-from-outside"),
    ],
)
def test_what_is_no_native_crash_is_not_called_one(run, code: str, cause: str | None) -> None:
    found = diagnose(run(code).died).diagnoses
    assert (found[0].cause if found else None) == cause
