"""What `faultlens run` costs programs that start many threads: each gets an alternate stack."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, WAYS, Bench, Table, column, interleave, numbers_of, overhead_row

THREADS, ROUNDS = 1000, 15
TEXT = f"{THREADS} Python threads that live at the same time, started and joined; timed inside the program."


def run(bench: Bench) -> Table:
    program = [bench.python, PROGRAMS / "threads.py", str(THREADS)]
    results = interleave(
        bench.rounds(ROUNDS), {way: lambda prefix=prefix: numbers_of([*prefix, *program]) for way, prefix in WAYS.items()}
    )
    samples = column(results, "thread")
    return Table("Threads", TEXT, OVERHEAD_HEADER, [overhead_row("a thread", samples, "µs", 1e6, digits=1)], samples)
