"""What the agent takes of a program's address space, threads, file descriptors, mappings and stacks.

    python benchmarks/footprint.py              # writes docs/footprint.md
    python benchmarks/footprint.py --runs 1     # quickly, and less exact

Each program is run alone and under `faultlens run` and looked at from outside, while it waits."""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import machine

from faultlens.agent import LIBRARY
from faultlens.agent.layout import Area

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs" / "footprint"
PAGE = HERE.parent / "docs" / "footprint.md"
UNDER = [sys.executable, "-m", "faultlens", "run", "--quiet", "--no-save", "--"]

PROGRAM = [sys.executable, str(PROGRAMS / "waits.py")]
ROWS: dict[str, Sequence[str]] = {
    "C": ["waits", "0"],
    "C, 64 threads": ["waits", "64"],
    "Python": [*PROGRAM, "0"],
    "Python, 64 threads": [*PROGRAM, "64"],
    "Python with NumPy": [*PROGRAM, "0", "numpy"],
    "Python with TensorFlow, after an op": [*PROGRAM, "0", "tensorflow"],
}

INTRODUCTION = """\
# What the agent takes

Made by `python benchmarks/footprint.py`, on {machine}.

`faultlens run` preloads one library, the agent, into the program. What a program has of its limits alone and under
faultlens, looked at from outside while it waits; the least of {runs} runs, because reservations of the C library's
allocator vary by tens of MiB from run to run where there are threads.
"""

EXPLANATION = """\
## What it is

| what | how much | when |
| --- | --- | --- |
| the library | {library} KiB, and the C library that the program has anyway | at the start |
| memory shared with the supervisor: crashes, the tail of the output, progress | {area} KiB | at the start |
| an alternate signal stack for each thread, with a guard page | {stack} KiB | when the thread starts |
| thread-local variables | {local} bytes of each thread's stack | with the thread: none is allocated later |
| a table of Python's code objects, and some small modules | 128 KiB and theirs | when TensorFlow or Keras is imported |
| threads, file descriptors | none | |

Up to 32 stacks of threads that have ended are kept and used again. Where the shared memory cannot be mapped, the agent
stays passive, and the crash is told by its exit status. Where the stack of a thread cannot be mapped, the thread runs
without: an overflow of its stack is then not seen by the agent. A thrown C++ exception is looked at without allocating
anything, unless the process has several C++ runtimes.

So a program under `ulimit -v` ends as alone with a limit that is lower by the first column of the tables
(`tests/crashes/test_at_the_limit.py` tries it at its edge).
"""


@dataclass(frozen=True)
class Footprint:
    address_space_kib: int
    resident_kib: int
    threads: int
    descriptors: int
    mappings: int
    thread_stack: int  # bytes in use before the thread's function begins; 0: not measured

    @classmethod
    def of(cls, pid: int, thread_stack: int) -> Footprint:
        process = Path("/proc", str(pid))
        status = process.joinpath("status").read_text()

        def field(name: str) -> int:
            found = re.search(rf"^{name}:\s+(\d+)", status, re.M)
            return int(found[1]) if found else 0

        mappings = len(process.joinpath("maps").read_text().splitlines())
        descriptors = len(os.listdir(process / "fd"))
        numbers = field("VmSize"), field("VmRSS"), field("Threads"), descriptors, mappings
        return cls(*numbers, thread_stack)

    def __and__(self, other: Footprint) -> Footprint:
        """The lesser of both."""
        theirs = asdict(other)
        return Footprint(**{name: min(value, theirs[name]) for name, value in asdict(self).items()})


COLUMNS = {
    "address_space_kib": "address space, KiB",
    "resident_kib": "resident, KiB",
    "threads": "threads",
    "descriptors": "descriptors",
    "mappings": "mappings",
    "thread_stack": "stack of a thread, bytes",
}


def look(command: Sequence[str]) -> Footprint:
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables
    ) as process:
        assert process.stdin and process.stdout
        words = process.stdout.readline().split()
        if not words or words[0] != "ready":
            raise RuntimeError(f"{command}: {words}")
        found = Footprint.of(*map(int, words[1:]))
        process.stdin.write("\n")
    return found


def least(command: Sequence[str], runs: int) -> Footprint:
    found = look(command)
    for _ in range(runs - 1):
        found &= look(command)
    return found


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="footprint-") as name:
        binary = Path(name, "waits")
        subprocess.run(["gcc", "-O1", "-w", "-pthread", PROGRAMS / "waits.c", "-o", binary], check=True)
        found: dict[str, tuple[Footprint, Footprint]] = {}
        for row, words in ROWS.items():
            command = [str(binary) if word == "waits" else word for word in words]
            found[row] = least(command, arguments.runs), least([*UNDER, *command], arguments.runs)
            print(row, *found[row], sep="\n  ", flush=True)
    described = machine.describe(sys.executable)
    tables = _more(found), _whole(found), EXPLANATION.format(**_parts(found))
    PAGE.write_text("\n".join([INTRODUCTION.format(machine=described, runs=arguments.runs), *tables]))
    return 0


def _more(found: dict[str, tuple[Footprint, Footprint]]) -> str:
    lines = ["## More than alone", "", *_header()]
    for row, (alone, under) in found.items():
        before, after = asdict(alone), asdict(under)
        cells = [f"{after[name] - before[name]:+,}" if before[name] else "" for name in COLUMNS]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _whole(found: dict[str, tuple[Footprint, Footprint]]) -> str:
    lines = ["## Alone, and under faultlens", "", *_header()]
    for row, ways in found.items():
        for way, footprint in zip(("alone", "under"), ways, strict=True):
            cells = [f"{value:,}" if value else "" for value in asdict(footprint).values()]
            lines.append(f"| {row}, {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _header() -> list[str]:
    return [f"|  | {' | '.join(COLUMNS.values())} |", f"| --- |{' --- |' * len(COLUMNS)}"]


def _parts(found: dict[str, tuple[Footprint, Footprint]]) -> dict[str, int]:
    """Of what the agent takes, as the tables and its file tell."""
    headers = subprocess.run(["readelf", "-lW", LIBRARY], capture_output=True, text=True, check=True).stdout
    loaded = re.findall(r"^\s*LOAD\s+0x\w+\s+(0x\w+)\s+0x\w+\s+0x\w+\s+(0x\w+)", headers, re.M)
    local = re.search(r"^\s*TLS(?:\s+0x\w+){4}\s+(0x\w+)", headers, re.M)
    (one, one_under), (many, many_under) = found["C"], found["C, 64 threads"]
    for_threads = many_under.address_space_kib - many.address_space_kib
    for_threads -= one_under.address_space_kib - one.address_space_kib
    return {
        "library": -(-max(int(start, 16) + int(size, 16) for start, size in loaded) // 1024),
        "area": ctypes.sizeof(Area) // 1024,
        "stack": for_threads // 64,
        "local": int(local[1], 16) if local else 0,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
