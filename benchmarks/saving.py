"""What `faultlens.save` costs, beside what Keras and TensorFlow take for the same file."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from typing import Any

import measure as m
from measure import PROGRAMS, Bench, Table

ROUNDS = 5
MEGABYTES = 800
BLOCKED, MEMORY, TRAINING = 0.05, 0.1, 1.03
NAMES = {"keras": "`.keras`", "weights": "`.weights.h5`", "saved_model": "SavedModel", "checkpoint": "checkpoint"}
HEADER = (
    "", "plain", "ours", "times plain", "noise", "target", "", "blocked in the background", "of plain", "target", "",
    "memory, plain", "memory, ours", "target", "",
)  # fmt: skip
TEXT = """\
A Keras model of {size:.0f} MB with the state of Adam, saved over its earlier save, in one process, in turns. "Plain" is
`model.save`, `save_weights`, `export`, `tf.train.Checkpoint.write`; they neither sync nor read back. "Ours" is
`faultlens.save` in the same process: written, synced, read back from the disk, compared, renamed. In the background
the program waits for the fork alone. Memory is the most that there was more than before, as a multiple of the model,
sampled; of several processes, shared pages counted once.

One save to `.keras` in the background while the model is trained: training took {lost:.2f} s longer ({low:.2f} …
{high:.2f}), which for one save a minute is {share:.1%} (target 3%: {verdict}). What training changes while the writer
reads it exists twice: {memory:.2f} times the model."""


def run(bench: Bench) -> Table:
    folder = bench.folder / "saves"
    folder.mkdir()
    rounds, megabytes = bench.rounds(ROUNDS), bench.scaled(MEGABYTES)
    numbers: dict[str, Any] = m.numbers_of([bench.python, PROGRAMS / "saving.py", str(rounds), str(megabytes), folder])
    shutil.rmtree(folder)
    table = Table("Saving", _text(numbers), HEADER, data=numbers)
    for form, name in NAMES.items():
        table.rows.append(_row(name, numbers["formats"][form], numbers["size"], form == "keras"))
    return table


def _text(numbers: dict[str, Any]) -> str:
    training = numbers["training"]
    lost = m.estimate([each["with"] - (each["without"] + each["again"]) / 2 for each in training])
    return TEXT.format(
        size=numbers["size"] / 1e6, lost=lost.value, low=lost.low, high=lost.high, share=lost.value / 60,
        verdict=m.verdict(m.Estimate(*(1 + value / 60 for value in (lost.value, lost.low, lost.high))), TRAINING),
        memory=statistics.median(each["memory"] for each in training) / numbers["size"],
    )  # fmt: skip


def _row(name: str, ways: dict[str, list[dict[str, float]]], size: int, has_target: bool) -> list[str]:
    seconds, blocked = m.column(ways, "seconds"), m.column(ways, "blocked")
    slower = m.ratio(seconds, "ours")
    waited = m.estimate([a / b for a, b in zip(blocked["background"], seconds[m.PLAIN], strict=True)])
    memory = m.column(ways, "memory")
    return [
        name,
        m.median_text(seconds[m.PLAIN], "s", 1),
        m.median_text(seconds["ours"], "s", 1),
        m.span(slower, ""),
        m.span(m.ratio(seconds, m.AGAIN), ""),
        "1" if has_target else "none",
        m.verdict(slower, 1.0) if has_target else "",
        m.median_text(blocked["background"], "s", 1, 3),
        m.span(waited, "", digits=3),
        f"{BLOCKED}",
        m.verdict(waited, BLOCKED),
        _share(memory[m.PLAIN], size),
        _share(memory["ours"], size),
        f"{MEMORY}",
        m.verdict(statistics.median(memory["ours"]) / size, MEMORY),
    ]


def _share(values: Sequence[float], size: int) -> str:
    return f"{statistics.median(values) / size:.2f}"
