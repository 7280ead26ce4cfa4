"""What `faultlens run` costs output through a pipe: its tail is remembered inside the program."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, Bench, Table, column, overhead_row, side_by_side

LIMIT = 1.05  # "full pipe speed"
# How many blocks of how many bytes, the limit of the ratio, and how many rounds.
CASES = {
    "100 MB: a block of 64 KiB": (1600, 1 << 16, LIMIT, 25),
    "a million small writes: one of 32 bytes": (1_000_000, 32, None, 7),
}
TEXT = """\
Written by native code, without Python in between, to a pipe that is read as fast as possible; timed inside the
program. "Full pipe speed" is taken as within 5%, for large blocks."""


def run(bench: Bench) -> Table:
    table = Table("Output", TEXT, OVERHEAD_HEADER)
    for what, (count, size, limit, rounds) in CASES.items():
        arguments = ["write_blocks", str(count), str(size)]
        results = side_by_side(bench, rounds, [bench.python, PROGRAMS / "native.py", bench.native, *arguments])
        table.data[what] = column(results, "seconds_each")
        table.rows.append(overhead_row(what, table.data[what], "µs", 1e6, limit))
    return table
