"""Runs the calls of crashing_ops.py on the TensorFlow at hand and adds what happened to the packaged table.

python tools/try_ops.py, once with the Python of every release. Each call runs in a child that was forked after the
import and before the first op: a crash costs a child, and the import is paid once."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # type: ignore[import-not-found]
from crashing_ops import CALLS

TABLE = Path(__file__).parent.parent / "src" / "faultlens" / "knowledge" / "tried.json"
SECONDS = 60
GIB = 1 << 30


def main() -> None:
    rows = {row["op"]: row for row in json.loads(TABLE.read_text())} if TABLE.exists() else {}
    for call in CALLS:
        row = rows.setdefault(call.op, {"op": call.op, "tried": {}})
        if call.issue:
            row["issue"] = call.issue
        ending = ending_of(call.code)
        # Some read memory that was never set, and crash one time in three: a crash that was seen once stays.
        if not row["tried"].get(tf.__version__, "").startswith("SIG"):
            row["tried"][tf.__version__] = ending
        print(tf.__version__, call.op, row["tried"][tf.__version__], flush=True)
    write(list(rows.values()))


def write(rows: list[dict[str, Any]]) -> None:
    """One row a line, so that a new release shows in a diff as what it changed."""
    lines = [json.dumps(dict(sorted(row.items()))) for row in sorted(rows, key=lambda row: row["op"])]
    TABLE.write_text("[\n " + ",\n ".join(lines) + "\n]\n")


def ending_of(code: str) -> str:
    """The signal it died of, "raises", or "returns"."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (8 * GIB, 8 * GIB))
        signal.alarm(SECONDS)
        with contextlib.suppress(BaseException):
            exec(code, {"tf": tf})
            os._exit(0)
        os._exit(1)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "raises" if os.WEXITSTATUS(status) else "returns"


if __name__ == "__main__":
    main()
