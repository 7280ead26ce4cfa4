"""How long it takes to find the ops in flight in a process that stands still."""

from __future__ import annotations

import statistics
import subprocess
import time
from typing import Any

from measure import PROGRAMS, Bench, Table, clean_environment, verdict

from faultlens.inspection import inspect
from faultlens.inspection.death import Death
from faultlens.inspection.subject import Subject

THREADS = (1, 8, 32)
ROUNDS = 7
LIMIT_MS = 300.0
HEADER = ("threads that compute", "threads in all", "ops found", "search", "per thread", "target", "")
TEXT = """\
A program multiplies matrices on several threads and is looked at, again and again, as at a crash: the search for the
ops in flight alone, of all threads together."""


def run(bench: Bench) -> Table:
    table = Table("Ops in flight", TEXT, HEADER)
    for threads in THREADS:
        looks = _looks(bench, threads)
        search = statistics.median(look["ms"] for look in looks)
        among = statistics.median(look["threads"] for look in looks)
        ops = sorted(look["ops"] for look in looks)
        table.rows.append([
            str(threads),
            f"{among:.0f}",
            f"{ops[0]} to {ops[-1]}",
            f"{search:.0f} ms",
            f"{search / among:.1f} ms",
            f"{LIMIT_MS:.0f} ms",
            verdict(search, LIMIT_MS),
        ])  # fmt: skip
        table.data[str(threads)] = looks
    return table


def _looks(bench: Bench, threads: int) -> list[dict[str, Any]]:
    command = [bench.python, PROGRAMS / "ops_in_flight.py", str(threads)]
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment(), **quiet) as program:  # type: ignore[call-overload]
        try:
            program.stdout.readline()
            return [_look(program.pid) for _ in range(bench.scaled(ROUNDS))]
        finally:
            program.kill()


def _look(pid: int) -> dict[str, Any]:
    time.sleep(0.3)
    search, measured = inspect.kernels_or_gap, {}

    def timed(*arguments: Any, **keywords: Any) -> Any:
        began = time.perf_counter()
        found = search(*arguments, **keywords)
        measured["ms"] = (time.perf_counter() - began) * 1000
        return found

    inspect.kernels_or_gap = timed
    try:
        crash = inspect.inspect(Subject(Death(pid)))
    finally:
        inspect.kernels_or_gap = search
    return {**measured, "threads": len(crash.threads), "ops": len(crash.kernels)}
