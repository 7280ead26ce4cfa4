"""Which devices a program may use. Not all of /dev: root could write to disks."""

from __future__ import annotations

import functools
import glob

HARMLESS = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
ACCELERATORS = ("nvidia*", "dri", "kfd", "dxg", "accel*", "infiniband")


@functools.lru_cache(maxsize=1)
def devices() -> list[str]:
    return [path for name in (*HARMLESS, *ACCELERATORS) for path in glob.glob(f"/dev/{name}")]
