"""Writes the names of TensorFlow's public ops, as they are registered: python tools/write_op_names.py.

Names from Python frames and C++ classes lose their spelling ("fifo_queue_v2" is FIFOQueueV2); the list gives it back.
Ops of several releases can be merged: the names that are there already are kept."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf  # type: ignore[import-not-found]

TABLE = Path(__file__).parent.parent / "src" / "faultlens" / "knowledge" / "op_names.txt"


def main() -> None:
    known = set(TABLE.read_text().split()) if TABLE.exists() else set()
    names = known | {name for name in dir(tf.raw_ops) if name[:1].isupper()}
    TABLE.write_text("\n".join(sorted(names)) + "\n")


if __name__ == "__main__":
    main()
