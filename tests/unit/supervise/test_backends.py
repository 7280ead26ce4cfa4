"""The three ways to see a death answer the same questions, and the deaths that they hand over are kept once each."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import nullcontext
from typing import Literal

import pytest

from faultlens.agent import LIBRARY
from faultlens.inspection.output_tail import OutputTail
from faultlens.records.crash import Crash, Frame, Outcome, Thread
from faultlens.supervise.backends import backend_of
from faultlens.supervise.backends.base import Backend, Started
from faultlens.supervise.deaths import MAX_CHILDREN_KEPT, Deaths
from faultlens.supervise.options import Options

Capture = Literal["agent", "tracer", "status"]
CAPTURES = [
    pytest.param("agent", marks=pytest.mark.skipif(not LIBRARY.exists(), reason="the agent was not built")),
    "tracer",
    "status",
]


def ended(backend: Backend) -> tuple[int, list[Crash]]:
    """Its wait status, and the deaths that were handed over."""
    deaths: list[Crash] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        last = next((status for status in backend.statuses() if not os.WIFSTOPPED(status)), None)
        deaths += backend.deaths(nullcontext)
        if last is not None:
            return last, deaths
        time.sleep(0.01)
    raise TimeoutError


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_program_that_ends(capture: Capture) -> None:
    backend = backend_of(Options(capture=capture), None)
    program = backend.start(["sh", "-c", "exit 3"], os.environ, ())
    status, deaths = ended(backend)
    assert os.waitstatus_to_exitcode(status) == 3 and not deaths
    crash = backend.remembered(backend.unseen(Outcome(kind="exit", exit_code=3)))
    assert (crash.pid, crash.method, crash.outcome.exit_code, crash.gaps) == (program.pid, "status", 3, ())
    assert backend.loop_of(program.pid) is None and not backend.belongs_to_program(os.getppid())


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_program_that_dies(capture: Capture) -> None:
    backend = backend_of(Options(capture=capture), None)
    program = backend.start([sys.executable, "-c", "import ctypes; ctypes.string_at(1)"], os.environ, ())
    status, deaths = ended(backend)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    seen = [(crash.pid, crash.method, crash.fault and crash.fault.address) for crash in deaths]
    assert seen == ([] if capture == "status" else [(program.pid, capture, 1)])


# --------------------------------------------------------------------------------------- what is kept


def death(pid: int, function: str, offset: int) -> Crash:
    frame = Frame(kind="native", function=function, library="/lib/op.so", offset=offset)  # type: ignore[arg-type]
    thread = Thread(id=pid, frames=(frame,), crashed=True)
    return Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="agent", pid=pid, threads=(thread,))


def test_a_place_of_death_is_kept_once() -> None:
    told: list[Crash] = []
    backend = backend_of(Options(capture="status"), None)
    deaths = Deaths(Started(1, time.monotonic(), time.time()), backend, OutputTail(None), told.append)
    for pid in (10, 11, 12):
        deaths.keep(death(pid, "crop", 16))
    deaths.keep(death(13, "resize", 32))
    assert [(child.pid, child.times) for child in deaths.children] == [(10, 3), (13, 1)]
    assert [child.times for child in told] == [1, 2, 3, 1]
    deaths.keep(death(1, "main", 48))
    deaths.keep(death(1, "emulator", 64))
    assert deaths.main == death(1, "main", 48) and len(told) == 4
    for number in range(MAX_CHILDREN_KEPT):
        deaths.keep(death(100 + number, "other", 1000 + number))
    assert (len(deaths.children), deaths.not_kept) == (MAX_CHILDREN_KEPT, 2)
