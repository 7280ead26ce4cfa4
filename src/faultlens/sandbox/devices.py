"""Which devices a program may use. Not all of /dev: root could write to disks."""

from __future__ import annotations

import glob

HARMLESS = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
ACCELERATORS = ("nvidia*", "dri", "kfd", "dxg", "accel*", "infiniband")


def devices() -> list[str]:
    return [path for name in (*HARMLESS, *ACCELERATORS) for path in glob.glob(f"/dev/{name}")]
