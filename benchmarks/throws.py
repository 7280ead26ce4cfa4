"""What `faultlens run` costs C++ exceptions: type, text and frames of each are noted when it is thrown."""

from __future__ import annotations

import json
import subprocess
from functools import partial

from measure import OVERHEAD_HEADER, PROGRAMS, WAYS, Bench, Table, clean_environment, interleave, overhead_row

COUNT, ROUNDS = 100_000, 9
TEXT = """\
`std::runtime_error` thrown and caught in a loop, in native code below Python; timed inside the program. Programs throw
seldom, so there is no target; this is what one exception costs."""


def run(bench: Bench) -> Table:
    table = Table("C++ exceptions", TEXT, OVERHEAD_HEADER)
    count = bench.scaled(COUNT)
    for depth in (1, 20):
        program = [bench.python, PROGRAMS / "native.py", bench.native, "throw_and_catch", str(count), str(depth)]
        ways = {way: partial(_seconds_each, [*prefix, *program], count) for way, prefix in WAYS.items()}
        samples = interleave(bench.rounds(ROUNDS), ways)
        what = f"caught {depth} call{'s' if depth > 1 else ''} further out"
        table.rows.append(overhead_row(what, samples, "µs", 1e6))
        table.data[what] = samples
    return table


def _seconds_each(command: list[str], count: int) -> float:
    done = subprocess.run(command, env=clean_environment(), capture_output=True, check=True)
    return float(json.loads(done.stderr)["seconds"]) / count
