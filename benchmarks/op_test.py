"""How many inputs `faultlens op test` tries, against a fresh Python with TensorFlow for each."""

from __future__ import annotations

import statistics

import measure as m
from measure import HERE, PROGRAMS, Bench, Table

ROUNDS = 5
INPUTS = 4000
SOURCE = HERE.parent / "tests" / "custom_op" / "ops" / "row_dot" / "fixed.cc"
AT_LEAST = 100.0  # times as many
HEADER = ("", "inputs a second", "inputs a second of CPU", "times as many a core", "target", "")
TEXT = """\
A correct op and the first inputs of `faultlens op test` (all combinations of ranks, empty and huge shapes). Each is
made, tried eagerly and in a graph, and compared with what it was before, with all tensors between forbidden pages;
against a fresh Python that imports TensorFlow, loads the library and calls the op once."""


def run(bench: Bench) -> Table:
    rounds, inputs = bench.rounds(ROUNDS), bench.scaled(INPUTS)
    program = [bench.python, PROGRAMS / "op_test.py", str(rounds), str(inputs), SOURCE]
    numbers: dict[str, list[float]] = m.numbers_of(program)  # type: ignore[assignment]
    numbers.pop("wall")
    table = Table("Torturing an op", TEXT, HEADER, data=numbers)
    more = m.ratio(numbers, "lab per core", "fresh per core")
    for name, words in (("fresh", "a fresh Python for each"), ("lab", "`faultlens op test`")):
        rates = [f"{statistics.median(numbers[key]):,.3g}" for key in (name, f"{name} per core")]
        met = "met" if more.low >= AT_LEAST else "**missed**"
        judged = [m.span(more, ""), f"at least {AT_LEAST:g}", met] if name == "lab" else [""] * 3
        table.rows.append([words, *rates, *judged])
    return table
