"""What `faultlens run` costs programs that start many threads: each gets an alternate stack."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, Bench, Command, Table, column, overhead_row, side_by_side

THREADS, ROUNDS = 1000, 9
TEXT = f"{THREADS} threads that live at the same time, started and joined; timed inside the program."


def run(bench: Bench) -> Table:
    programs: dict[str, tuple[Command, str]] = {
        "a thread of Python": ([PROGRAMS / "threads.py", str(THREADS)], "thread"),
        "a thread of native code": (
            [PROGRAMS / "native.py", bench.native, "start_threads", str(THREADS)],
            "seconds_each",
        ),
    }
    table = Table("Threads", TEXT, OVERHEAD_HEADER)
    for what, (program, name) in programs.items():
        table.data[what] = column(side_by_side(bench, ROUNDS, [bench.python, *program]), name)
        table.rows.append(overhead_row(what, table.data[what], "µs", 1e6, digits=1))
    return table
