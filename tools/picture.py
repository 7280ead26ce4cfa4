"""Draws what faultlens tells, from its JSON, as a terminal shows it: `python tools/picture.py JSON OUT.svg`."""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path

import msgspec
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from faultlens.records import report_file
from faultlens.records.finding import Checkup
from faultlens.records.forecast import Forecast
from faultlens.records.op_finding import OpReport
from faultlens.records.scan import Scan
from faultlens.report import checkup, forecast, op_findings, scanned, terminal
from faultlens.report.make import renewed

CALM = TerminalTheme(
    background=(22, 24, 29),
    foreground=(208, 212, 220),
    normal=[
        *((22, 24, 29), (240, 98, 98), (126, 200, 130), (222, 184, 100)),
        *((98, 150, 220), (186, 140, 220), (100, 190, 200), (208, 212, 220)),
    ],
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--title", default="faultlens run train.py")
    options = parser.parse_args()
    console = Console(
        file=io.StringIO(),
        record=True,
        width=options.width,
        height=1000,  # nothing scrolls away
        force_terminal=True,
        color_system="truecolor",
    )
    data = options.report.read_bytes()
    if b'"examinations"' in data:
        checkup.render(msgspec.json.decode(data, type=Checkup), console=console, verbose=options.verbose)
    elif b'"flaws"' in data:
        scanned.render(msgspec.json.decode(data, type=Scan), console=console, verbose=options.verbose)
    elif b'"largest_batch"' in data:
        forecast.render(msgspec.json.decode(data, type=Forecast), console=console, verbose=options.verbose)
    elif b'"verb"' in data:
        op_findings.render(msgspec.json.decode(data, type=OpReport), console=console, verbose=options.verbose)
    else:
        report = renewed(report_file.read(options.report))
        terminal.render(report, verbose=options.verbose, console=console, stored=options.report)
    drawn = console.export_svg(title=options.title, theme=CALM)
    # Rich names fonts on the network; a picture must do with those that are there.
    options.picture.write_text(re.sub(r"@font-face\s*{[^}]*}\s*|<!--.*?-->\s*", "", drawn, flags=re.S))


if __name__ == "__main__":
    main()
