"""Fetches a core from systemd's store: `coredumpctl`, or `coredumpctl:MATCH` for a pid or a program."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faultlens.errors import FaultlensError

SECONDS = 300


def is_coredumpctl(target: str) -> bool:
    return target == "coredumpctl" or target.startswith("coredumpctl:")


@contextmanager
def fetched_core(target: str) -> Iterator[Path]:
    """The newest core that matches, in a temporary file."""
    match = target.partition(":")[2]
    with tempfile.TemporaryDirectory(prefix="faultlens-core-") as folder:
        core = Path(folder) / "core"
        command = ["coredumpctl", "dump", f"--output={core}", "--", *([match] if match else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except FileNotFoundError as error:
            raise FaultlensError(
                "This machine has no coredumpctl.", "Name the core file itself: faultlens explain CORE."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise FaultlensError(
                f"coredumpctl took longer than {SECONDS} s.",
                "Save the core yourself: coredumpctl dump -o core.",
            ) from error
        if done.returncode != 0 or not core.exists():
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].rstrip(".")
            raise FaultlensError(
                f"coredumpctl has no such core: {reason}.", "`coredumpctl list` shows the cores there are."
            )
        yield core
