"""What `faultlens scan --decode` costs: items per second beside plain decoding, and seconds for each death."""

from __future__ import annotations

import statistics
from typing import Any

import measure as m
from measure import PROGRAMS, Bench, Table

ROUNDS = 7
ITEMS = 8000
OF_PLAIN = 1.25  # times the seconds of plain decoding
NAMES = {"small": "64 × 64 pixels", "photo": "500 × 375 pixels"}
HEADER = ("JPEG", "bytes", "plain", "in the sandbox", "times plain", "noise", "target", "", "memory of the scan")
TEXT = """\
Images that `tf.io.decode_image` decodes one after another: in a loop of one process, and handed to a process that may
die of them (which counts, guards and answers). "Times plain" is the time for the same images.

One item that kills the decoder, among 40 others, with all that follows: a second try as the first of a new process, a
look at the death, the report. The first time it took {first}, the same death again {again}; a fresh Python that
imports TensorFlow and decodes one image takes {fresh}."""


def run(bench: Bench) -> Table:
    rounds, count = bench.rounds(ROUNDS), bench.scaled(ITEMS)
    numbers: dict[str, Any] = m.numbers_of([bench.python, PROGRAMS / "decode.py", str(rounds), str(count)])
    seconds = {name: m.median_text(values, "s", 1) for name, values in numbers["seconds"].items()}
    table = Table("Decoding in a sandbox", TEXT.format(**seconds), HEADER, data=numbers)
    for name, words in NAMES.items():
        table.rows.append(_row(words, numbers[name]))
    return table


def _row(name: str, samples: dict[str, Any]) -> list[str]:
    slower, noise = m.ratio(samples, "plain", "sandbox"), m.ratio(samples, "plain", "plain again")
    return [
        name,
        f"{samples['bytes']:,}",
        f"{statistics.median(samples['plain']):,.0f} a second",
        f"{statistics.median(samples['sandbox']):,.0f} a second",
        m.span(slower, ""),
        m.span(noise, ""),
        f"{OF_PLAIN}",
        m.verdict(slower, OF_PLAIN),
        f"{samples['grown'] / 2**20:+.1f} MiB",
    ]
