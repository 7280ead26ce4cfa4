"""How much memory do the program and the processes below it hold themselves? Their anonymous memory, also what is
swapped out: no files, which the kernel can drop, and nothing of other programs.

Forked processes share pages, which would count in each. The exact share of each costs milliseconds: it is read once a
second, and in between the same overlap is taken off the sum."""

from __future__ import annotations

import re

from faultlens.inspection import process
from faultlens.system.procfs import read_text

EXACT_S = 1.0
_HELD = re.compile(r"^(?:RssAnon|VmSwap):\s+(\d+) kB", re.M)
_SHARE = re.compile(r"^(?:Pss_Anon|SwapPss):\s+(\d+) kB", re.M)


class OwnMemory:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._family = [pid]
        self._overlap = 0
        self._next = 0.0

    def look(self, seconds: float) -> int:
        """Bytes."""
        if seconds >= self._next:
            self._next = seconds + EXACT_S
            self._family = [self._pid, *process.descendants(self._pid)]
            self._overlap = self._shared() if len(self._family) > 1 else 0
        return max(self._sum() - self._overlap, 0)

    def _sum(self) -> int:
        return sum(_kilobytes(_HELD, f"/proc/{pid}/status") for pid in self._family) << 10

    def _shared(self) -> int:
        shares = [_kilobytes(_SHARE, f"/proc/{pid}/smaps_rollup") for pid in self._family]
        return max(self._sum() - (sum(shares) << 10), 0) if all(shares) else 0


def _kilobytes(wanted: re.Pattern[str], path: str) -> int:
    return sum(map(int, wanted.findall(read_text(path) or "")))
