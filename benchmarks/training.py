"""What `faultlens run` costs training: a Keras fit, and eager operations one by one."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, WAYS, Bench, Table, column, interleave, numbers_of, overhead_row

EPOCHS, EAGER_ROUNDS, ROUNDS = 8, 60_000, 9
LIMIT = 1.01
TEXT = """\
Timed inside the program, after a warm-up: steps of `model.fit` of a small CNN (batches of 32 images of 28 × 28), and
multiplications, additions and `tf.nn.relu` of two numbers each, called eagerly. The wall time has the import of
TensorFlow in it and the start of faultlens."""


def run(bench: Bench) -> Table:
    program = [bench.python, PROGRAMS / "training.py", str(bench.scaled(EPOCHS)), str(bench.scaled(EAGER_ROUNDS))]
    results = interleave(
        bench.rounds(ROUNDS), {way: lambda prefix=prefix: numbers_of([*prefix, *program]) for way, prefix in WAYS.items()}
    )
    fit, eager, wall = (column(results, name) for name in ("fit", "eager", "wall"))
    rows = [
        overhead_row("a step of Keras fit", fit, "ms", 1e3, LIMIT),
        overhead_row("an eager operation", eager, "µs", 1e6, LIMIT),
        overhead_row("the whole program, wall time", wall, "s", 1),
    ]
    return Table("Training", TEXT, OVERHEAD_HEADER, rows, {"fit": fit, "eager": eager, "wall": wall})
