"""A limit for the memory of one process: a control group, where one may be made."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@contextlib.contextmanager
def memory_group(limit: int | None) -> Iterator[Path | None]:
    """The group, to be joined with `join`. None without a limit."""
    if limit is None:
        yield None
        return
    group = (V1 if V1.is_dir() else V2) / f"saving-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if V1.is_dir() else "memory.max")).write_text(str(limit))
        yield group
    finally:
        _remove(group)


def join(group: Path | None) -> None:
    if group is not None:
        (group / "cgroup.procs").write_text(str(os.getpid()))


def can_be_limited() -> bool:
    try:
        with memory_group(1 << 30):
            return True
    except OSError:
        return False


def _remove(group: Path) -> None:
    for _ in range(100):  # it takes the kernel a moment to see that the last process is gone
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.02)
