"""How many inputs `faultlens op test` tries, per second and per second of CPU, and what a fresh Python takes for one.

    op_test.py ROUNDS INPUTS SOURCE

SOURCE is that of a correct op. Prints one JSON object: samples of inputs a second, and seconds of a fresh Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from faultlens.custom_op.building import build, target_of
from faultlens.custom_op.fuzz import plans, wire
from faultlens.custom_op.fuzz.session import Session, Setup

FRESH = """\
import tensorflow as tf
library = tf.load_op_library({library!r})
library.{function}({arguments}).numpy()
"""


def cpu_seconds() -> float:
    """Of this process, and of all that have ended below it."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def in_the_lab(library: Path, inputs: int) -> tuple[float, float, float]:
    """Seconds of its beginning, seconds for the inputs, and seconds of CPU for all."""
    before, start = cpu_seconds(), time.monotonic()
    with Session(Setup(library, sys.executable)) as session:
        op = session.ops[0]
        outlines = list(islice(plans.first(op), 200))
        asks = [wire.asked(plans.call_of(op, plan), "eager") for plan in outlines]
        session.one(asks[0])
        begun = time.monotonic()
        session.run([asks[number % len(asks)] for number in range(inputs)])
        ended = time.monotonic()
    return begun - start, ended - begun, cpu_seconds() - before


def fresh(library: Path) -> tuple[float, float]:
    """Seconds, and seconds of CPU, of a Python that tries one input."""
    with Session(Setup(library, sys.executable)) as session:
        definition = session.ops[0].definition
    arguments = ", ".join(f"{each.name}=tf.ones([4, 4])" for each in definition.inputs)
    script = FRESH.format(library=str(library), function=definition.function, arguments=arguments)
    before, start = cpu_seconds(), time.monotonic()
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return time.monotonic() - start, cpu_seconds() - before


def main() -> None:
    rounds, inputs, source = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "op.so"
        build([source], library, target_of(sys.executable))
        told: dict[str, list[float]] = {name: [] for name in ("lab", "lab per core", "fresh", "fresh per core")}
        for _ in range(rounds):
            idle = in_the_lab(library, 1)
            busy = in_the_lab(library, inputs)
            told["lab"].append(inputs / busy[1])
            told["lab per core"].append(inputs / max(busy[2] - idle[2], 1e-3))
            seconds, cpu = fresh(library)
            told["fresh"].append(1 / seconds)
            told["fresh per core"].append(1 / cpu)
    print(json.dumps(told), file=sys.stderr)


main()
