"""What `faultlens run` costs output through a pipe: its tail is remembered inside the program."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial

from measure import OVERHEAD_HEADER, PROGRAMS, WAYS, Bench, Table, clean_environment, interleave, overhead_row

CHUNK = 1 << 20
ROUNDS = 15
LIMIT = 1.05  # "full pipe speed"
# What is written: how many blocks of how many bytes.
CASES = {
    "100 MB in blocks of 64 KiB": (1600, 1 << 16),
    "a write of 32 bytes (of 1,000,000)": (1_000_000, 32),
}
TEXT = """\
Written by native code, without Python in between, to a pipe that is read as fast as possible; timed inside the
program. "Full pipe speed" is taken as within 5%, for the large blocks."""


def run(bench: Bench) -> Table:
    table = Table("Output", TEXT, OVERHEAD_HEADER)
    for what, (count, size) in CASES.items():
        program = [bench.python, PROGRAMS / "native.py", bench.native, "write_blocks", str(count), str(size)]
        ways = {way: partial(_drain, [*prefix, *program]) for way, prefix in WAYS.items()}
        samples = interleave(bench.rounds(ROUNDS), ways)
        large = size > 4096
        per_write = {way: [each / count for each in values] for way, values in samples.items()}
        row = (
            overhead_row(what, samples, "ms", 1e3, LIMIT, digits=1)
            if large
            else overhead_row(what, per_write, "µs", 1e6)
        )
        table.rows.append(row)
        table.data[what] = samples
    return table


def _drain(command: list[str]) -> float:
    """The program's own seconds, its output read and thrown away."""
    with subprocess.Popen(
        command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        while os.read(process.stdout.fileno(), CHUNK):
            pass
        words = process.stderr.read()
    return float(json.loads(words)["seconds"])
