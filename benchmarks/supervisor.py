"""What the supervisor itself needs: memory and CPU while a TensorFlow program runs, memory for its death."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

from measure import EXAMPLE, FAULTLENS, PROGRAMS, Bench, Table, clean_environment, verdict
from memory import pss_kib, status_kib

IDLE_S = 10
LIMIT_MB = 60.0
WAYS = ("agent", "ptrace")
HEADER = ("", "peak, it runs", "proportional, it runs", "CPU, it runs", "peak, it has died", "target", "")
TEXT = """\
The faultlens process alone, beside a program that has imported TensorFlow and then idles. Peak: VmHWM.
Proportional: Pss, where pages shared with other processes count in part. CPU: of one core, over {seconds} s after
the import; later it becomes less. The target holds for both peaks."""


def run(bench: Bench) -> Table:
    table = Table("The supervisor", TEXT.format(seconds=bench.scaled(IDLE_S)), HEADER)
    for way in WAYS:
        idle, share = _beside_idle(bench, way)
        dying = _peak_at_death(bench, way)
        row = [way, f"{idle['peak']:.0f} MB", f"{idle['pss']:.0f} MB", f"{share:.2%}", f"{dying:.0f} MB"]
        table.rows.append([*row, f"{LIMIT_MB:.0f} MB", verdict(max(idle["peak"], dying), LIMIT_MB)])
        table.data[way] = {**idle, "cpu": share, "dying": dying}
    return table


def _command(way: str, *program: str | Path) -> list[str | Path]:
    return [*FAULTLENS, "run", f"--capture={way}", "--no-save", "--", *program]


def _beside_idle(bench: Bench, way: str) -> tuple[dict[str, float], float]:
    seconds = bench.scaled(IDLE_S)
    command = _command(way, bench.python, PROGRAMS / "idle.py", str(seconds + 2))
    with subprocess.Popen(
        command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        process.stdout.readline()  # TensorFlow has been imported
        before = cpu_seconds(process.pid)
        time.sleep(seconds)
        share = (cpu_seconds(process.pid) - before) / seconds
        memory = {"peak": status_kib(process.pid, "VmHWM"), "pss": pss_kib(process.pid)}
    return {name: (kib or 0) * 1024 / 1e6 for name, kib in memory.items()}, share


def _peak_at_death(bench: Bench, way: str) -> float:
    process = subprocess.Popen(
        _command(way, bench.python, EXAMPLE),
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    while process.poll() is None:
        peak = status_kib(process.pid, "VmHWM") or peak
        time.sleep(0.002)
    return peak * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """All threads; the first number of schedstat is nanoseconds on a CPU."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9
