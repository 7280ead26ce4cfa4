"""What a second worker brings to a scan, and how much memory a scan takes."""

from __future__ import annotations

import io
import json
import os
import random
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import measure as m
from measure import FAULTLENS, PROGRAMS, Bench, Table

ROUNDS = 5
FASTER = 1.8
LINKS, MEGABYTES, IMAGES, NAMES = 240, 200, 2500, 4
LARGE, SMALL = 1600, 10_000
TEXT = """\
`faultlens scan --workers 1` beside `--workers 2`, in turns, on {cpus} CPUs; files in the page cache. TFRecord:
{total:.0f} GB, in {links} names of one file of {megabytes} MB. Images: {images:,} JPEG files of {width} by
{width}, {kilobytes:.0f} kB each, with {names} names each. Seconds as
the scan itself tells them, with its planning and the start of its workers.

Memory of the largest process of a scan: {small:.0f} MB for a TFRecord file of {small_file} MB, {large:.0f} MB for one
of {large_file} MB. Small files, {handed:,.0f} a second with all workers."""
WIDTH = 800


def run(bench: Bench) -> Table:
    folder = bench.folder / "workers"
    folder.mkdir()
    megabytes, links, images = bench.scaled(MEGABYTES), LINKS, bench.scaled(IMAGES)
    _records(folder / "one" / "0.tfrecord", megabytes)
    for number in range(links):
        _link(folder / "one" / "0.tfrecord", folder / "many" / f"{number}.tfrecord")
    kilobytes = _images(folder / "images", images) / images / 1000
    small = bench.scaled(SMALL)
    _small(folder / "small", small)
    _records(folder / "large" / "0.tfrecord", bench.scaled(LARGE))
    jobs = {"TFRecord": ["many"], "JPEG, --pixels": ["images", "--pixels"]}
    table = Table("Workers of a scan", "", ("", "1 worker", "2 workers", "times as fast", "target", ""))
    for name, (where, *options) in jobs.items():
        ways = {count: partial(_seconds, folder / where, *options, "--workers", count) for count in ("1", "2")}
        samples = m.interleave(bench.rounds(ROUNDS), ways)
        table.data[name] = samples
        faster = m.ratio(samples, "1", "2")
        turned = m.Estimate(-faster.value, -faster.high, -faster.low)
        times = (f"{statistics.median(samples[count]):.2f} s" for count in ("1", "2"))
        table.rows.append([name, *times, m.span(faster, "times"), f"{FASTER}", m.verdict(turned, -FASTER)])
    table.data["files a second"] = [small / _seconds(folder / "small") for _ in range(bench.rounds(ROUNDS))]
    memory = {where: _memory(folder / where) for where in ("one", "large")}
    table.data["memory"] = memory
    table.text = TEXT.format(
        cpus=os.cpu_count(), total=links * megabytes / 1000, links=links, megabytes=megabytes, images=images,
        width=WIDTH, names=NAMES, kilobytes=kilobytes, small=memory["one"] / 1e6, large=memory["large"] / 1e6,
        small_file=megabytes, handed=statistics.median(table.data["files a second"]), large_file=bench.scaled(LARGE),
    )  # fmt: skip
    return table


def _records(path: Path, megabytes: int) -> None:
    sys.path.insert(0, str(PROGRAMS))
    from tfrecords_of import write

    path.parent.mkdir()
    write(path, 100_000, megabytes * 1_000_000)


def _link(path: Path, name: Path) -> None:
    name.parent.mkdir(exist_ok=True)
    os.link(path, name)


def _small(folder: Path, count: int) -> None:
    """Files that take no time: what is left is the work of handing them out."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.csv").write_text(f"x,y\n{number},{number}\n")


def _images(folder: Path, count: int) -> int:
    """How many bytes they have."""
    import numpy as np
    from PIL import Image

    folder.mkdir()
    chance = random.Random(3)
    numbers = np.random.default_rng(3)
    total = 0
    for number in range(count):
        small = Image.fromarray(numbers.integers(0, 255, (9, 9, 3), dtype=np.uint8)).resize((WIDTH, WIDTH))
        out = io.BytesIO()
        small.effect_spread(3).save(out, "JPEG", quality=chance.randint(80, 95))
        total += (folder / f"{number}.jpg").write_bytes(out.getvalue())
        for again in range(1, NAMES):
            os.link(folder / f"{number}.jpg", folder / f"{number}-{again}.jpg")
    return total


def _seconds(folder: Path, *options: str) -> float:
    ran = subprocess.run([*FAULTLENS, "scan", folder, *options, "--json", "-"], capture_output=True, check=False)
    found = json.loads(ran.stdout)
    if ran.returncode or not found["files_checked"]:
        raise RuntimeError(f"the scan of {folder} ended with {ran.returncode}")
    return float(found["seconds"])


def _memory(folder: Path) -> int:
    """In a process of its own, whose children are the scan's."""
    code = f"import resource, subprocess\nsubprocess.run({[*FAULTLENS, 'scan', str(folder)]!r}, capture_output=True)\n"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(ran.stdout) * 1024
