"""How long `faultlens explain` takes for a core file of a TensorFlow program, against gdb and pystack."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import measure as m
from measure import EXAMPLE, FAULTLENS, Bench, Command, Table
from memory import peak_of_tree

ROUNDS = 7
SECONDS_LIMIT, BYTES_LIMIT = 3.0, 400e6
OURS, GDB = "faultlens explain", 'gdb -batch -ex "thread apply all bt"'
HEADER = ("", "wall time", "times ours", "peak memory", "of it not backed by files", "target", "")
TEXT = """\
The core of `examples/train.py` ({size:.0f} MB). Memory is what the command and its children occupied together,
shared pages counted once, pages of mapped files included; the largest of samples 20 ms apart, in a run of its own."""


def run(bench: Bench) -> Table:
    core, executable = _make_core(bench), str(Path(bench.python).resolve())
    pystack: Command = [sys.executable, "-m", "pystack", "core", core, "--native-all"]
    commands: dict[str, Command] = {
        OURS: [*FAULTLENS, "explain", "--no-save", core],
        "pystack core --native-all": pystack,
    }
    walls = m.interleave(
        bench.rounds(ROUNDS), {name: partial(m.seconds_of, command) for name, command in commands.items()}
    )
    peaks = {name: peak_of_tree(command) for name, command in commands.items()}
    peaks[GDB] = peak_of_tree(["gdb", "-batch", "-ex", "thread apply all bt", executable, core])
    walls[GDB] = [peaks[GDB].seconds]
    ours = statistics.median(walls[OURS])
    table = Table("A core file", TEXT.format(size=core.stat().st_size / 1e6), HEADER)
    for name, peak in peaks.items():
        wall = m.estimate(walls[name])
        text = m.span(wall) if len(walls[name]) > 1 else f"{wall.value:.1f} s (once)"
        memory = (f"{size / 1e6:.0f} MB" for size in (peak.resident, peak.anonymous))
        targets = ["", ""]
        if name == OURS:
            verdicts = m.verdict(wall, SECONDS_LIMIT), m.verdict(peak.resident, BYTES_LIMIT)
            targets = [f"{SECONDS_LIMIT:g} s, {BYTES_LIMIT / 1e6:.0f} MB", " / ".join(verdicts)]
        table.rows.append([f"`{name}`", text, f"{wall.value / ours:.1f}", *memory, *targets])
        table.data[name] = {"seconds": walls[name], **peak._asdict()}
    return table


def _make_core(bench: Bench) -> Path:
    subprocess.run(
        [bench.python, EXAMPLE],
        cwd=bench.folder,
        env=m.clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        preexec_fn=_allow_core,
    )
    cores = sorted(bench.folder.glob("core*"))
    if not cores:
        raise RuntimeError("no core file in the working directory: see kernel.core_pattern and ulimit -c")
    return cores[-1]


def _allow_core() -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
