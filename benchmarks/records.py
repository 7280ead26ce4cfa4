"""How fast TFRecord files are checked, beside what the checksum alone takes and what TensorFlow takes to read them."""

from __future__ import annotations

import shutil
from typing import Any

import measure as m
from measure import PROGRAMS, Bench, Table

ROUNDS = 7
MEGABYTES = 200
OF_THE_LIMIT, SMALL, OF_TENSORFLOW = 0.75, 2000, 5
NAMES = {
    "read": "reading the file, and nothing else",
    "crc": "CRC-32C of the whole file, in memory",
    "read and crc": "reading the file, and CRC-32C of all of it",
    "memory": "**faultlens**: framing and checksums, in memory",
    "file": "**faultlens**: the file, and what is in its Examples",
    "tf_record_iterator": "`tf_record_iterator`",
    "tf.data": "`tf.data.TFRecordDataset`",
}
TEXT = """\
Megabytes per CPU second (of all threads), on a file of {megabytes} MB in the page cache, in one process, in turns.
The CRC is google-crc32c's. Checking needs every byte once from the file and once for the checksum: what reading and one
CRC of everything take together is the limit for a file.

| target | 100 kB records | | 1 kB records | |
|---|---|---|---|---|
| in memory, at least 75% of the CRC in memory | {memory[0]} | {memory[1]} | {memory[2]} | {memory[3]} |
| the file, at least 75% of reading it and one CRC | {file[0]} | {file[1]} | {file[2]} | {file[3]} |
| the file, at least 75% of the CRC in memory alone | {strict[0]} | {strict[1]} | {strict[2]} | {strict[3]} |
| the file, at least 5 times tf.data | {times[0]} | {times[1]} | {times[2]} | {times[3]} |
| the file, at least 2,000 MB/s | | | {small[0]} | {small[1]} |
"""


def run(bench: Bench) -> Table:
    folder = bench.folder / "records"
    folder.mkdir()
    rounds, megabytes = bench.rounds(ROUNDS), bench.scaled(MEGABYTES)
    numbers: dict[str, Any] = m.numbers_of([bench.python, PROGRAMS / "records.py", str(rounds), str(megabytes), folder])
    shutil.rmtree(folder)
    large, small = numbers["100000"], numbers["1000"]
    speed = m.estimate(small["file"])
    text = TEXT.format(
        megabytes=megabytes,
        memory=_shares(large, small, "memory", "crc"),
        file=_shares(large, small, "file", "read and crc"),
        strict=_shares(large, small, "file", "crc"),
        times=[*_at_least(m.ratio(large, "file", "tf.data"), OF_TENSORFLOW, "{:.1f} times")]
        + [*_at_least(m.ratio(small, "file", "tf.data"), OF_TENSORFLOW, "{:.0f} times")],
        small=_at_least(speed, SMALL, "{:,.0f} MB/s"),
    )
    table = Table("Scanning TFRecord files", text, ("", "100 kB records", "1 kB records"), data=numbers)
    for name, words in NAMES.items():
        table.rows.append([words, *(f"{m.estimate(samples[name]).value:,.0f} MB/s" for samples in (large, small))])
    return table


def _shares(large: dict[str, Any], small: dict[str, Any], ours: str, limit: str) -> list[str]:
    both = (m.ratio(samples, ours, limit) for samples in (large, small))
    return [text for share in both for text in _at_least(share, OF_THE_LIMIT, "{:.0%}")]


def _at_least(measured: m.Estimate, least: float, form: str) -> tuple[str, str]:
    turned = m.Estimate(-measured.value, -measured.high, -measured.low)
    return form.format(measured.value), m.verdict(turned, -least)
