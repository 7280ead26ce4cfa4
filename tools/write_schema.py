"""Writes the published shapes of what commands write as JSON into docs/: `python tools/write_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from faultlens.records import report_file
from faultlens.records.finding import Checkup
from faultlens.records.op_finding import OpReport
from faultlens.records.scan import Scan
from faultlens.records.verification import Verification

DOCS = Path(__file__).parent.parent / "docs"


def schemas() -> dict[Path, str]:
    shapes = {
        "report.schema.json": report_file.json_schema(),
        "checkup.schema.json": msgspec.json.schema(Checkup),
        "verification.schema.json": msgspec.json.schema(Verification),
        "op.schema.json": msgspec.json.schema(OpReport),
        "scan.schema.json": msgspec.json.schema(Scan),
    }
    return {DOCS / name: json.dumps(shape, indent=1, ensure_ascii=False) + "\n" for name, shape in shapes.items()}


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text)
