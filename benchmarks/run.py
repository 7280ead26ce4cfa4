"""Runs the benchmarks, side by side, and writes docs/benchmarks.md and benchmarks/results.json.

    python benchmarks/run.py [NAME …] [--quick] [--python PATH]

Without names all are run; with names, the tables of the others stay as they are. The faultlens measured is that of the
interpreter that runs this; --python names one that has TensorFlow, if this one has not."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import checkup
import core_file
import corpus
import death
import decode
import diagnosis
import forecast
import forecast_rule
import hunt
import images
import kernels
import leaks
import losses
import machine
import needs
import op_lab
import op_sanitize
import op_test
import output
import petabyte
import records
import report_length
import saving
import startup
import supervisor
import threads
import throws
import tracing
import training
import watch
import workers
from measure import HERE, PROGRAMS, Bench, Table

BENCHMARKS = {
    "training": training.run,
    "tracing": tracing.run,
    "startup": startup.run,
    "threads": threads.run,
    "output": output.run,
    "throws": throws.run,
    "death": death.run,
    "core": core_file.run,
    "supervisor": supervisor.run,
    "watch": watch.run,
    "hunt": hunt.run,
    "leaks": leaks.run,
    "diagnosis": diagnosis.run,
    "report": report_length.run,
    "kernels": kernels.run,
    "needs": needs.run,
    "thresholds": needs.thresholds,
    "doctor": checkup.run,
    "losses": losses.run,
    "saving": saving.run,
    "records": records.run,
    "decode": decode.run,
    "images": images.run,
    "damaged": images.found,
    "corpus": corpus.run,
    "workers": workers.run,
    "petabyte": petabyte.run,
    "forecast": forecast.run,
    "forecast-rule": forecast_rule.run,
    "op-lab": op_lab.run,
    "op-test": op_test.run,
    "op-sanitize": op_sanitize.run,
}
PAGE = HERE.parent / "docs" / "benchmarks.md"
RESULTS = HERE / "results.json"
INTRODUCTION = """\
# Benchmarks

Made by `python benchmarks/run.py`{how}, on {machine}; {seconds:.0f} s.

Variants are run in turns, in a random order each round. Numbers are medians of the rounds; costs are medians of
the ratio to the plain run of the same round. In brackets: the 95% confidence interval (bootstrap). The noise of
the bench is measured in the same way, with the plain run against itself: a cost inside that interval cannot be
told from none.
"""


def main() -> None:
    arguments = _arguments()
    began = time.monotonic()
    tables: dict[str, Table] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        os.environ["FAULTLENS_HOME"] = f"{folder}/home"
        bench = _bench(Path(folder), arguments)
        for name in arguments.names or BENCHMARKS:
            start = time.monotonic()
            tables[name] = _measured(name, bench)
            print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
            print(_text(tables[name]), flush=True)
    seconds = time.monotonic() - began
    how = " (with --quick)" if arguments.quick else ""
    introduction = INTRODUCTION.format(how=how, machine=machine.describe(arguments.python), seconds=seconds)
    sections = {table.title: _text(table) for table in tables.values()}
    data = {name: table.data for name, table in tables.items()}
    if arguments.names:  # the others stay as they are
        introduction, earlier = _sections(PAGE.read_text())
        sections, data = {**earlier, **sections}, {**json.loads(RESULTS.read_text()), **data}
    PAGE.write_text("\n".join([introduction, *sections.values()]))
    RESULTS.write_text(json.dumps(data, indent=1) + "\n")
    print(f"written: docs/{PAGE.name}, benchmarks/{RESULTS.name}")


def _sections(page: str) -> tuple[str, dict[str, str]]:
    """The introduction, and the text under each title."""
    introduction, *others = re.split(r"^(?=## )", page, flags=re.M)
    return introduction.strip() + "\n", {text.splitlines()[0][3:]: text.strip() + "\n" for text in others}


def _measured(name: str, bench: Bench) -> Table:
    try:
        return BENCHMARKS[name](bench)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return Table(name.capitalize(), "", ("not measured",), [[str(error).splitlines()[0]]])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="few rounds: does it work?")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with TensorFlow")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    arguments.python = str(Path(arguments.python).absolute())  # a link is what makes a virtual environment
    return arguments


def _bench(folder: Path, arguments: argparse.Namespace) -> Bench:
    native, stamp = folder / "libnative.so", folder / "libstamp.so"
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", native, PROGRAMS / "native.cc"], check=True)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", stamp, PROGRAMS / "stamp.c"], check=True)
    return Bench(arguments.python, arguments.quick, folder, native, stamp)


def _text(table: Table) -> str:
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    grid = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"## {table.title}\n\n{table.text}\n\n{grid}\n"


if __name__ == "__main__":
    main()
