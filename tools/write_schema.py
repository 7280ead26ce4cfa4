"""Writes docs/report.schema.json, the published shape of a report: `python tools/write_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from faultlens import reportfile

SCHEMA = Path(__file__).parent.parent / "docs" / "report.schema.json"


def schema_text() -> str:
    return json.dumps(reportfile.json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.parent.mkdir(exist_ok=True)
    SCHEMA.write_text(schema_text())
