"""The last of what the program printed: from the agent's ring, or from the file it was sent to."""

from __future__ import annotations

import os
import stat

from faultlens.agent.area import SharedArea
from faultlens.records.crash import Output

TAIL_BYTES = 64 * 1024


class OutputTail:
    """Remembers where stdout and stderr stood when the program started."""

    def __init__(self, area: SharedArea | None) -> None:
        self._area = area
        self._starts = {descriptor: _file_position(descriptor) for descriptor in (1, 2)}

    def read(self, pid: int) -> Output:
        return Output(stdout=self._read(pid, 1), stderr=self._read(pid, 2))

    def _read(self, pid: int, descriptor: int) -> str | None:
        start = self._starts[descriptor]
        if start is not None and (text := _file_tail(descriptor, start)) is not None:
            return text
        if self._area is not None and self._area.attached:
            return self._area.output_tail(pid, descriptor)[-TAIL_BYTES:]
        return None


def _file_position(descriptor: int) -> int | None:
    """Where writing to a regular file goes on; None for terminals, pipes and the like."""
    try:
        status = os.fstat(descriptor)
        return os.lseek(descriptor, 0, os.SEEK_CUR) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _file_tail(descriptor: int, start: int) -> str | None:
    try:
        reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        end = os.fstat(reader).st_size
        begin = max(start, end - TAIL_BYTES)
        return os.pread(reader, max(end - begin, 0), begin).decode("utf-8", "backslashreplace")
    except OSError:
        return None
    finally:
        os.close(reader)
