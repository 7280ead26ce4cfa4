"""How long the diagnosis alone takes: from the record of a crash to the verdict."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from measure import Bench, Table, verdict

from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file

RECORDED = Path(__file__).parent.parent / "tests" / "recorded"
LIMIT_MS = 50.0
HEADER = ("", "time", "target", "")
TEXT = "Over the {count} recorded crashes of the tests. The first one also loads the catalogue of causes."


def run(bench: Bench) -> Table:
    crashes = [report_file.read(path).crash for path in sorted(RECORDED.glob("*.json"))]
    began = time.perf_counter()
    diagnose(crashes[0])
    first = (time.perf_counter() - began) * 1000
    times = []
    for crash in crashes:
        rounds = []
        for _ in range(bench.scaled(5)):
            began = time.perf_counter()
            diagnose(crash)
            rounds.append((time.perf_counter() - began) * 1000)
        times.append(statistics.median(rounds))
    table = Table("The diagnosis alone", TEXT.format(count=len(crashes)), HEADER)
    for name, value in (("first", first), ("median", statistics.median(times)), ("slowest", max(times))):
        target = (f"{LIMIT_MS:.0f} ms", verdict(value, LIMIT_MS)) if name != "first" else ("", "")
        table.rows.append([name, f"{value:.1f} ms", *target])
        table.data[name] = {"ms": value}
    return table
