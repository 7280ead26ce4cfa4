"""Memory of a stopped process for a search that follows many pointers: cached by page, bounded in time and work."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import NoReturn

from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping

PAGE = 4096
MAX_CACHED = 2048  # pages: 8 MB
MAX_READS = 60_000
GRACE = 0.2  # of the time and of the reads is kept for describing what was found
ADDRESS_END = 1 << 47  # of user space


class SpentError(Exception):
    """The time or the number of reads that the search may take is used up; `Pages.spent` says which."""


class Pages:
    """Reads that answer with nothing where nothing can be read, and raise SpentError when the search must end."""

    def __init__(self, memory: Memory, mappings: Sequence[Mapping], seconds: float, reads: int = MAX_READS) -> None:
        self._memory = memory
        self._mappings = [mapping for mapping in mappings if mapping.permissions.startswith("r")]
        self._starts = [int(mapping.start) for mapping in self._mappings]
        self._ends = [int(mapping.end) for mapping in self._mappings]
        self._cache: dict[int, bytes] = {}
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds * (1 - GRACE)
        self._reads_left = int(reads * (1 - GRACE))
        self._grace_reads = reads - self._reads_left
        self.spent: str | None = None  # why the search must end

    def grant_grace(self) -> None:
        """The search has ended early; what it found may still be described. Does nothing the second time."""
        self._deadline += self._seconds * GRACE if self._grace_reads else 0
        self._reads_left = max(self._reads_left, 0) + self._grace_reads
        self._grace_reads = 0

    def mapping(self, address: int) -> Mapping | None:
        """The readable mapping that holds `address`."""
        index = bisect_right(self._starts, address) - 1
        return self._mappings[index] if index >= 0 and address < self._ends[index] else None

    def mapping_near(self, address: int, reach: int) -> Mapping | None:
        """The readable mapping that holds `address` or begins at most `reach` bytes behind it."""
        index = bisect_right(self._ends, address)
        if index == len(self._ends) or self._starts[index] > address + reach:
            return None
        return self._mappings[index]

    def is_writable(self, address: int) -> bool:
        """Where objects live: heap, stacks, anonymous memory."""
        mapping = self.mapping(address)
        return mapping is not None and mapping.permissions[1] == "w"

    def is_library(self, address: int) -> bool:
        """Where code and constants live: in a file that is mapped, writable or not."""
        mapping = self.mapping(address)
        return mapping is not None and mapping.path is not None and mapping.path.startswith("/")

    def is_code(self, address: int) -> bool:
        mapping = self.mapping(address)
        return mapping is not None and "x" in mapping.permissions

    def read(self, address: int, size: int) -> bytes:
        """All of it or nothing."""
        offset = address % PAGE
        if offset + size <= PAGE:
            data = self._page(address - offset)[offset : offset + size]
            return data if len(data) == size else b""
        parts = []
        left = size
        while left > 0:
            offset = address % PAGE
            part = self._page(address - offset)[offset : offset + left]
            if not part:
                return b""
            parts.append(part)
            address += len(part)
            left -= len(part)
        return b"".join(parts)

    def read_bulk(self, address: int, size: int) -> bytes:
        """As many bytes as there are, without keeping them."""
        self._count()
        return self._memory.read(address, size) if 0 < address < ADDRESS_END else b""

    def number(self, address: int, size: int) -> int | None:
        data = self.read(address, size)
        return int.from_bytes(data, "little") if data else None

    def word(self, address: int) -> int:
        """The pointer that stands there; 0 where there is none, which is no address either."""
        return int.from_bytes(self.read(address, 8), "little")

    def _page(self, start: int) -> bytes:
        page = self._cache.get(start)
        if page is None:
            if self.mapping(start) is None:
                return b""
            self._count()
            page = self._memory.read(start, PAGE)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[start] = page
        return page

    def check_time(self) -> None:
        if time.monotonic() > self._deadline:
            self._end(f"it took longer than {self._seconds:g} s")

    def _count(self) -> None:
        self.check_time()
        self._reads_left -= 1
        if self._reads_left < 0:
            self._end("there was too much to follow")

    def _end(self, reason: str) -> NoReturn:
        self.spent = reason
        raise SpentError
