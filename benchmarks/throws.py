"""What `faultlens run` costs C++ exceptions: type, text and frames of each are noted when it is thrown."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, Bench, Table, column, overhead_row, side_by_side

COUNT, ROUNDS = 30_000, 9
TEXT = """\
`std::runtime_error` thrown and caught in a loop, in native code below Python; timed inside the program. Programs
throw seldom, so there is no target; this is what one exception costs."""


def run(bench: Bench) -> Table:
    table = Table("C++ exceptions", TEXT, OVERHEAD_HEADER)
    for depth in (1, 20):
        arguments = ["throw_and_catch", str(bench.scaled(COUNT)), str(depth)]
        results = side_by_side(bench, ROUNDS, [bench.python, PROGRAMS / "native.py", bench.native, *arguments])
        what = f"caught {depth} call{'s' if depth > 1 else ''} further out"
        table.data[what] = column(results, "seconds_each")
        table.rows.append(overhead_row(what, table.data[what], "µs", 1e6))
    return table
