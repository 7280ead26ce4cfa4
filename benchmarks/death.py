"""How long it takes from the fatal signal to the report, against gdb and pystack on the same process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import measure as m
from measure import EXAMPLE, FAULTLENS, PLAIN, Bench, Table

ROUNDS = 5
LIMIT = 2.0
PATIENCE_S = 120
AGENT, PTRACE = "`faultlens run`, agent", "`faultlens run`, ptrace"
COLD = f"{AGENT}, libraries not in memory"
HEADER = ("", "signal to report", "times the agent's", "signal to end of the command", "target", "")
TEXT = """\
`examples/train.py` dies by SIGABRT on a thread of TensorFlow's; a preloaded `abort` notes the time. The report
counts as written when its folder has its final name, after fsync. The command ends when the report has been
shown. gdb and pystack were given the same process, held in `abort`: their time is that of the command alone.
"Not in memory": TensorFlow's libraries were dropped from the page cache before the program was started."""


def run(bench: Bench) -> Table:
    run_ = [*FAULTLENS, "run"]
    rounds = bench.rounds(ROUNDS)
    results = m.interleave(
        rounds,
        {
            PLAIN: partial(_die, bench, []),
            AGENT: partial(_die, bench, [*run_, "--capture=agent", "--"]),
            PTRACE: partial(_die, bench, [*run_, "--capture=ptrace", "--"]),
            COLD: partial(_die, bench, [*run_, "--capture=agent", "--"], cold=True),
        },
    )
    to_report, to_end = m.column(results, "report"), m.column(results, "end")
    table = Table("From the signal to the report", TEXT, HEADER, data={"report": to_report, "end": to_end})
    agent = m.estimate(to_report[AGENT]).value
    table.rows.append([PLAIN, "", "", m.span(m.estimate(to_end[PLAIN])), "", ""])
    for way in (AGENT, PTRACE, COLD):
        report = m.estimate(to_report[way])
        ended = m.span(m.estimate(to_end[way]))
        table.rows.append(
            [way, m.span(report), f"{report.value / agent:.1f}", ended, f"{LIMIT:g} s", m.verdict(report, LIMIT)]
        )
    for name, seconds in _others(bench, rounds).items():
        measured = m.estimate(seconds)
        text = m.span(measured) if len(seconds) > 1 else f"{measured.value:.1f} s (once)"
        table.rows.append([f"`{name}`", text, f"{measured.value / agent:.1f}", "", "", ""])
        table.data[name] = seconds
    return table


def _die(bench: Bench, prefix: list[str], cold: bool = False) -> dict[str, float]:
    """Seconds from the signal to the report and to the end of the command."""
    if cold:
        _forget_files(bench.python)
    home = bench.folder / f"home-{time.monotonic_ns()}"
    stamp = bench.folder / "stamp"
    stamp.unlink(missing_ok=True)
    m.seconds_of(
        [*prefix, bench.python, EXAMPLE],
        LD_PRELOAD=bench.stamp, BENCHMARK_STAMP=stamp, FAULTLENS_HOME=home,
    )  # fmt: skip
    end, died = time.time(), float(stamp.read_text())
    if prefix and not home.exists():
        raise RuntimeError(f"{' '.join(prefix)}: no report")
    # The folder changes for the last time when a finished report gets its final name in it.
    return {"report": home.stat().st_mtime - died if prefix else 0.0, "end": end - died}


def _forget_files(python: str) -> None:
    """Drop TensorFlow's files from the page cache, but for what others have mapped."""
    find = "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"
    package = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    for path in Path(package).rglob("*.so*"):
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def _others(bench: Bench, rounds: int) -> dict[str, list[float]]:
    with _held(bench) as pid:
        pystack = [sys.executable, "-m", "pystack", "remote", "--native-all", str(pid)]
        gdb = ["gdb", "-batch", "-ex", "thread apply all bt", "-p", str(pid)]
        return {
            "pystack remote --native-all": [m.seconds_of(pystack) for _ in range(rounds)],
            'gdb -batch -ex "thread apply all bt" -p': [m.seconds_of(gdb)],
        }


@contextlib.contextmanager
def _held(bench: Bench) -> Iterator[int]:
    """The process id of the example, held in abort()."""
    stamp = bench.folder / "held"
    environment = m.clean_environment(LD_PRELOAD=bench.stamp, BENCHMARK_STAMP=stamp, BENCHMARK_HOLD="1")
    process = subprocess.Popen(
        [bench.python, EXAMPLE], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        patience = time.monotonic() + PATIENCE_S
        while not (stamp.exists() and stamp.read_text()):
            if process.poll() is not None or time.monotonic() > patience:
                raise RuntimeError("the example did not reach abort()")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
