"""Writes the published shapes of what commands write as JSON into docs/: `python tools/write_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from faultlens import reportfile
from faultlens.finding import Checkup
from faultlens.op_findings import OpReport
from faultlens.scanned import Scan
from faultlens.verified import Verification

DOCS = Path(__file__).parent.parent / "docs"


def schemas() -> dict[Path, str]:
    shapes = {
        "report.schema.json": reportfile.json_schema(),
        "checkup.schema.json": msgspec.json.schema(Checkup),
        "verification.schema.json": msgspec.json.schema(Verification),
        "op.schema.json": msgspec.json.schema(OpReport),
        "scan.schema.json": msgspec.json.schema(Scan),
    }
    return {DOCS / name: json.dumps(shape, indent=1, ensure_ascii=False) + "\n" for name, shape in shapes.items()}


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text)
