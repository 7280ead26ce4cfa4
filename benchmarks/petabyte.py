"""A petabyte on paper: what the measured rates add up to. Nothing is measured here."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

from measure import HERE, Bench, Table

PETABYTE = 1e15
DAY_S = 24 * 3600
LINE = 25e9 / 8  # bytes a second of a node
CORES = 16  # of a node
PIECE = 256 << 20
TEXT = """\
From the other tables: bytes a second of one core, what a petabyte takes at that rate, and how many nodes with {cores}
cores and a line of 25 Gbit/s scan it in a day. A petabyte a day are {rate:.1f} GB/s: {lines} nodes are needed to carry
it at all. It is {pieces:.1f} million pieces; the process that hands them out has done {handed:,.0f} a second, which are
{minutes:.0f} minutes of a day. Storage that gives so much, and stragglers, are not in it."""


def run(_: Bench) -> Table:
    data = json.loads((HERE / "results.json").read_text())
    missing = {"records", "images", "decode", "workers"} - set(data)
    if missing:
        raise RuntimeError(f"not measured yet: {', '.join(sorted(missing))}")
    pieces = PETABYTE / PIECE
    handed = statistics.median(data["workers"]["files a second"])
    lines = -(-PETABYTE // (LINE * DAY_S))
    text = TEXT.format(
        cores=CORES, rate=PETABYTE / DAY_S / 1e9, lines=int(lines), pieces=pieces / 1e6, handed=handed,
        minutes=pieces / handed / 60,
    )  # fmt: skip
    table = Table("A petabyte, on paper", text, ("", "one core", "core hours", "nodes for a day", "bound by"))
    for name, rate in _rates(data).items():
        nodes = max(PETABYTE / (rate * CORES * DAY_S), lines)
        bound = "line" if nodes <= lines else "CPU"
        hours = PETABYTE / rate / 3600
        table.rows.append([name, f"{rate / 1e6:,.0f} MB/s", f"{hours:,.0f}", f"{-(-nodes // 1):,.0f}", bound])
    return table


def _rates(data: dict[str, Any]) -> dict[str, float]:
    """Bytes a second of one core."""
    photo = max(data["images"].values(), key=lambda each: each["bytes"])
    decoded = data["decode"]["photo"]
    return {
        "TFRecord, 100 kB records": _median(data["records"]["100000"]["file"]) * 1e6,
        "TFRecord, 1 kB records": _median(data["records"]["1000"]["file"]) * 1e6,
        "JPEG": photo["bytes"] / _median(photo["seconds"]["walk"]),
        "JPEG, `--pixels`": photo["bytes"] / _median(photo["seconds"]["pixels"]),
        "JPEG, `--decode`": decoded["bytes"] * _median(decoded["sandbox"]),
    }


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)
