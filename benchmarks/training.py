"""What `faultlens run` costs training: a Keras fit, and eager operations one by one."""

from __future__ import annotations

from measure import OVERHEAD_HEADER, PROGRAMS, Bench, Table, column, overhead_row, side_by_side

EPOCHS, CHUNKS, ROUNDS = 9, 9, 10
LIMIT = 1.01
TEXT = """\
Timed inside the program, after a warm-up: steps of `model.fit` of a small CNN (batches of 32 images of
28 × 28), and multiplications, additions and `tf.nn.relu` of two numbers each, called eagerly. CPU time is that
of the program alone, and less disturbed by others on the machine. The whole program has the import of TensorFlow
in it and the start of faultlens."""
# What is shown of a program's numbers: name, unit, scale, limit of the ratio.
SHOWN = {
    "a step of Keras fit": ("fit", "ms", 1e3, LIMIT),
    "its CPU time": ("fit_cpu", "ms", 1e3, LIMIT),
    "an eager operation": ("eager", "µs", 1e6, LIMIT),
    "its CPU time ": ("eager_cpu", "µs", 1e6, LIMIT),
    "the whole program": ("wall", "s", 1, None),
}


def run(bench: Bench) -> Table:
    amount = str(bench.scaled(EPOCHS)), str(bench.scaled(CHUNKS))
    results = side_by_side(bench, ROUNDS, [bench.python, PROGRAMS / "training.py", *amount])
    table = Table("Training", TEXT, OVERHEAD_HEADER)
    for what, (name, unit, scale, limit) in SHOWN.items():
        table.data[name] = column(results, name)
        table.rows.append(overhead_row(what.strip(), table.data[name], unit, scale, limit))
    return table
