"""Makes the packaged table of published crashes: python tools/write_advisories.py ADVISORIES.jsonl …

An input has one object per advisory of the PyPA advisory database (https://github.com/pypa/advisory-database,
CC-BY-4.0). Kept are those of TensorFlow that name an op and an effect that ends a process; of one that is in several
inputs, the last."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from faultlens.diagnosis.evidence.ops import registered_class
from faultlens.knowledge.op_names import registered

TABLE = Path(__file__).parent.parent / "src" / "faultlens" / "knowledge" / "advisories.json"
SOURCE = "PyPA advisory database, https://github.com/pypa/advisory-database, CC-BY-4.0; facts extracted, wording ours"
CAUSES = {
    "check_failure": "op-check-failed",
    "null_dereference": "op-null-dereference",
    "heap_out_of_bounds_read": "op-out-of-bounds",
    "heap_out_of_bounds_write": "op-out-of-bounds",
    "division_by_zero": "op-division-by-zero",
    "segfault": "",  # any of them
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("advisories", type=Path, nargs="+")
    kept = merged([json.loads(line) for path in parser.parse_args().advisories for line in path.open()])
    lines = ",\n".join(f"  {json.dumps(row)}" for row in kept)
    TABLE.write_text(f'{{"source": {json.dumps(SOURCE)},\n "advisories": [\n{lines}\n]}}\n')


def merged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    latest = {row["id"]: row for row in rows if row.get("package", "tensorflow") == "tensorflow"}
    return [row for row in map(compact, latest.values()) if row is not None]


def compact(row: dict[str, Any]) -> dict[str, Any] | None:
    ops = sorted({op for op in map(op_named, row["raw_ops"] + row["apis"] + row["named"]) if op})
    effects = sorted({CAUSES[effect] for effect in row["effects"] if effect in CAUSES} - {""})
    lite = row["sources"] and all("tensorflow/lite/" in source for source in row["sources"])
    crashes = any(effect in CAUSES for effect in row["effects"])
    if lite or not ops or not crashes:
        return None
    return {"id": row["id"], "ghsa": row["ghsa"], "ops": ops, "effects": effects, "affected": row["affected"]}


def op_named(name: str) -> str | None:
    """ "tf.raw_ops.Switch", "MklRequantizePerChannelOp" and "Switch" name ops; "Status" does not."""
    last = name.rpartition(".")[2]
    return registered(last) or (registered_class(last.removesuffix("Op")) if last.endswith("Op") else None)


if __name__ == "__main__":
    main()
