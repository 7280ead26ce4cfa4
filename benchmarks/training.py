"""What `faultlens run` costs training: a Keras fit, and eager operations one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from measure import OVERHEAD_HEADER, PROGRAMS, WAYS, Bench, Table, column, overhead_row, rounds_of_turns

EPOCHS, CHUNKS, ROUNDS = 15, 15, 8
LIMIT = 1.01
TEXT = """\
Timed inside the program, after a warm-up: steps of `model.fit` of a small CNN (batches of 32 images of
28 × 28), and multiplications, additions and `tf.nn.relu` of two numbers each, called eagerly. All variants run at
the same time and take turns, a part of 0.2 to 0.3 s each; each part is compared with the plain one beside it. CPU time
is that of the program alone, and less disturbed by others on the machine. What faultlens itself computes meanwhile
falls on all of them alike, the plain one too, and does not show here: see [The supervisor](#the-supervisor)."""
# What is shown of a program's numbers: name, unit, scale, limit of the ratio.
SHOWN = {
    "a step of Keras fit": ("fit", "ms", 1e3, LIMIT),
    "its CPU time": ("fit_cpu", "ms", 1e3, LIMIT),
    "an eager operation": ("eager", "µs", 1e6, LIMIT),
    "its CPU time ": ("eager_cpu", "µs", 1e6, LIMIT),
}


def run(bench: Bench) -> Table:
    results = measured(bench, WAYS)
    table = Table("Training", TEXT, OVERHEAD_HEADER)
    for what, (name, unit, scale, limit) in SHOWN.items():
        table.data[name] = column(results, name)
        table.rows.append(overhead_row(what.strip(), table.data[name], unit, scale, limit))
    return table


def measured(
    bench: Bench, prefixes: Mapping[str, Sequence[str]], epochs: int = EPOCHS, chunks: int = CHUNKS
) -> dict[str, list[dict[str, float]]]:
    """The numbers of the program, one of each round, run behind each of the prefixes."""
    amounts = bench.scaled(epochs), bench.scaled(chunks)
    program = [bench.python, str(PROGRAMS / "training.py"), *map(str, amounts)]
    ways = {way: [*prefix, *program] for way, prefix in prefixes.items()}
    return rounds_of_turns(bench.rounds(ROUNDS), ways, sum(amounts))
