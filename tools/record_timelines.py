"""Writes tests/unit/supervise/timelines from reports: `record_timelines.py leaking|healthy NAME=REPORT.json …`.

The reports are those of `faultlens run --json REPORT.json -- python tests/memory/leaking.py …` (or healthy.py)."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from faultlens.records import report_file
from faultlens.text.sizes import KIB

FOLDER = Path(__file__).parents[1] / "tests" / "unit" / "supervise" / "timelines"
COLUMNS = ("seconds", "steps", "anonymous_kib", "shared_kib", "files", "threads")


def main(kind: str, *reports: str) -> None:
    for entry in reports:
        name, _, path = entry.partition("=")
        samples = report_file.from_json(Path(path).read_bytes()).crash.timeline
        (FOLDER / kind).mkdir(parents=True, exist_ok=True)
        with open(FOLDER / kind / f"{name}.csv", "w", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            for sample in samples:
                anonymous, shared = (
                    None if value is None else value // KIB for value in (sample.rss_anonymous, sample.rss_shared)
                )
                table.writerow(
                    (round(sample.seconds, 1), sample.steps, anonymous, shared, sample.open_files, sample.threads)
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
