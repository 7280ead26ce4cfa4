"""What the scan finds in 10,000 files with one wound each, and what it says about healthy ones."""

from __future__ import annotations

import shutil
from typing import Any

import measure as m
from measure import PROGRAMS, Bench, Table

MUTATED, HEALTHY = 10_200, 100_000
TEXT = """\
{files:,} files, each with one wound at a random place, all given to one `faultlens scan`: the share that it finds;
in brackets with `--pixels`, where that finds more. A flipped bit in what has no checksum (pixels of a BMP, numbers in
an npy or CSV file, the entropy-coded data of a JPEG) leaves a file that is as whole as any: nothing can find all of
these. Left out are cuts that leave a whole file: a TFRecord file between two records, a CSV file behind a line or
inside of its last number.

Cut off: {cut_found:,} of {cut_files:,} found (target all: {cut}). Any wound in TFRecord files, plain or packed:
{records_found:,} of {records_files:,} (target all: {records}). False alarms in {healthy_files:,} healthy files with
{healthy:,} records: {alarms} (target 0: {no_alarms})."""


def run(bench: Bench) -> Table:
    folder = bench.folder / "corpus"
    command = [bench.python, PROGRAMS / "corpus.py", str(bench.scaled(MUTATED)), str(bench.scaled(HEALTHY)), folder]
    numbers: dict[str, Any] = m.numbers_of(command)
    shutil.rmtree(folder)
    found, false = numbers["found"], numbers["false"]
    wounds = list(next(iter(found.values())))
    cuts = _sum(form["cut off"] for form in found.values())
    records = _sum(cell for name, form in found.items() if name.startswith("TFRecord") for cell in form.values())
    text = TEXT.format(
        files=sum(cell["files"] for form in found.values() for cell in form.values()),
        cut_found=cuts[0], cut_files=cuts[1], cut=_all(cuts),
        records_found=records[0], records_files=records[1], records=_all(records),
        healthy_files=false["files"], healthy=false["records"],
        alarms=len(false["flaws"]), no_alarms=m.verdict(len(false["flaws"]), 0),
    )  # fmt: skip
    table = Table("What the scan finds", text, ("", *wounds), data=numbers)
    for name, form in found.items():
        table.rows.append([name, *(_cell(form[wound]) for wound in wounds)])
    return table


def _sum(cells: Any) -> tuple[int, int]:
    kept = list(cells)
    return sum(cell["walk"] for cell in kept), sum(cell["files"] for cell in kept)


def _all(counts: tuple[int, int]) -> str:
    return m.verdict(counts[1] - counts[0], 0)


def _cell(cell: dict[str, int]) -> str:
    more = f" ({cell['pixels'] / cell['files']:.0%})" if cell["pixels"] > cell["walk"] else ""
    return f"{cell['walk'] / cell['files']:.0%}{more}"
