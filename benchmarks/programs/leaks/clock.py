"""How long does a program run? As long as its first argument says: no sleeping, steps without a pause."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 55.0
BEGAN = time.monotonic()


def over(share: float = 1.0) -> bool:
    return time.monotonic() - BEGAN > SECONDS * share


def steps() -> Iterator[int]:
    """0, 1, 2, … until the time is over."""
    step = 0
    while not over():
        yield step
        step += 1
    print(f"{step} steps")
